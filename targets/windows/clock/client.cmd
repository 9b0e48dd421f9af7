@rem SPDX-License-Identifier: Apache-2.0
@rem The clock stack of a Windows target: the Windows Time service. Run as an administrator, from cmd.exe; bw-provision.exe and
@rem bw-job.exe lie beside this file, the configuration in ..\config.
@rem
@rem   client.cmd start w32time   configure the service for high accuracy and start it, old values first into the undo file
@rem   client.cmd hold            holdover: use no source, keep the rate
@rem   client.cmd resume          use the time server again
@rem   client.cmd status          NDJSON: whether the service runs
@rem   client.cmd stop            put settings and service back as they were; harmless when nothing runs, and twice
@rem
@rem Exit codes are those of ..\..\linux-rt\clock\client.sh: 0 done; 1 something could not be put back; 2 bad argument; 3 not permitted,
@rem or something is missing; 4 not in this state; 5 an earlier run cannot be undone.
@echo off
setlocal
set "run=%~dp0.."
if not defined BENCHWRIGHT_STATE set "BENCHWRIGHT_STATE=%ProgramFiles%\Benchwright\state"
rem An undo file of its own: provisioning has another one in the folder above.
set "BENCHWRIGHT_STATE=%BENCHWRIGHT_STATE%\clock"
if "%~1"=="start" goto start
if "%~1"=="hold" goto hold
if "%~1"=="resume" goto resume
if "%~1"=="status" goto status
if "%~1"=="stop" goto stop
echo client.cmd: unknown verb "%~1"; allowed: start, hold, resume, status, stop>&2
exit /b 2

:start
if not "%~2"=="w32time" (
    echo client.cmd: unknown stack "%~2"; allowed: w32time>&2
    exit /b 2
)
sc query W32Time >nul 2>nul
if errorlevel 1 (
    echo client.cmd: there is no Windows Time service W32Time>&2
    exit /b 3
)
call :put_back >nul
if errorlevel 1 (
    echo client.cmd: what an earlier run has left cannot be put back>&2
    exit /b 5
)
"%~dp0bw-provision.exe" --settings "%run%\config\w32time.conf" apply
if errorlevel 1 exit /b 3
rem It looks for its source at once; whether it finds it, the log below says.
w32tm /resync /rediscover /nowait >nul 2>nul
set server=
for /f "usebackq eol=#" %%s in ("%run%\config\server") do set server=%%s
if not exist "%run%\log" mkdir "%run%\log"
rem How far the clock is off, every 2 s, by w32tm's own exchanges: the servo says nothing that is the same in every language.
"%~dp0bw-job.exe" start "%run%\log" w32tm.exe /stripchart /computer:%server% /period:2 /dataonly
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

:stop
call :put_back
exit /b %ERRORLEVEL%

rem The service is stopped first: it reads the settings that come back when it starts again.
:put_back
"%~dp0bw-job.exe" end "%run%\log" >nul 2>nul
if not exist "%BENCHWRIGHT_STATE%\undo" exit /b 0
net stop W32Time >nul 2>nul
"%~dp0bw-provision.exe" restore
exit /b %ERRORLEVEL%
