# Runs the agent on Windows from each start of the PC on, as SYSTEM. Call it in a PowerShell of an
# administrator, beside kanade-agent.pyz, once the PC has enrolled; call it again after an upgrade.
$ErrorActionPreference = "Stop"

$program = Join-Path $env:ProgramFiles "Kanade"
$state = Join-Path $env:ProgramData "kanade-agent"
# The launcher of Python for all users; the one of a single user's installation is not SYSTEM's.
$python = Join-Path $env:SystemRoot "py.exe"
if (-not (Test-Path $python)) { throw "Install Python 3.11 or later for all users, with the launcher" }
if (-not (Test-Path (Join-Path $state "identity.json"))) { throw "Enrol this PC first" }

New-Item -ItemType Directory -Force $program | Out-Null
Copy-Item -Force (Join-Path $PSScriptRoot "kanade-agent.pyz") $program

# Windows has no file modes: the credential is for SYSTEM and administrators alone.
icacls $state /inheritance:r /grant "*S-1-5-18:(OI)(CI)F" "*S-1-5-32-544:(OI)(CI)F" | Out-Null

$action = New-ScheduledTaskAction -Execute $python `
    -Argument "-3 `"$program\kanade-agent.pyz`" --state-dir `"$state`""
$trigger = New-ScheduledTaskTrigger -AtStartup
$settings = New-ScheduledTaskSettingsSet -ExecutionTimeLimit 0 -RestartCount 999 `
    -RestartInterval (New-TimeSpan -Minutes 1) -StartWhenAvailable `
    -AllowStartIfOnBatteries -DontStopIfGoingOnBatteries -MultipleInstances IgnoreNew
Register-ScheduledTask -Force -TaskName "Kanade agent" -Action $action -Trigger $trigger `
    -Settings $settings -User "SYSTEM" -RunLevel Highest | Out-Null
Start-ScheduledTask -TaskName "Kanade agent"
