"""Beside celery beat: its rows become tasks (`importing`), which are sent to its workers
(`sending`); and beat may be the clock of Kanade's own ticks (`clock`)."""
