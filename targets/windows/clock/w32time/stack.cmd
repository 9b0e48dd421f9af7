@rem SPDX-License-Identifier: Apache-2.0
@rem The Windows Time service, set for high accuracy. Called by client.cmd with a verb.
@setlocal
@goto %~1

:start
sc query W32Time >nul 2>nul
if errorlevel 1 (
    echo client.cmd: there is no Windows Time service W32Time>&2
    exit /b 3
)
"%script%bw-provision.exe" --settings "%run%\config\w32time.conf" apply
if errorlevel 1 exit /b 3
rem It looks for its source at once; whether it finds it, the log below says.
w32tm /resync /rediscover /nowait >nul 2>nul
set server=
for /f "usebackq eol=#" %%s in ("%run%\config\server") do set server=%%s
if not exist "%run%\log" mkdir "%run%\log"
rem How far the clock is off, every 2 s, by w32tm's own exchanges: the servo says nothing that is the same in every language.
"%script%bw-job.exe" start "%run%\log" w32tm.exe /stripchart /computer:%server% /period:2 /dataonly
if errorlevel 1 exit /b 3
exit /b 0

:hold
w32tm /config /syncfromflags:no /update >nul
if errorlevel 1 exit /b 4
exit /b 0

:resume
w32tm /config /syncfromflags:manual /update >nul
if errorlevel 1 exit /b 4
exit /b 0

:status
set running=false
sc query W32Time 2>nul | find "RUNNING" >nul
if not errorlevel 1 set running=true
echo {"type":"daemon","name":"W32Time","running":%running%,"exit_code":null,"last_words":""}
exit /b 0

rem The service is stopped first: it reads the settings that come back when it starts again.
:stop
if exist "%BENCHWRIGHT_STATE%\undo" net stop W32Time >nul 2>nul
exit /b 0
