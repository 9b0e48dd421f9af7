@rem SPDX-License-Identifier: Apache-2.0
@rem The clock stack of a Windows target: the Windows Time service, or the project's own. Run as an administrator, from cmd.exe;
@rem bw-provision.exe, bw-job.exe, bw-timed.exe and bw-timectl.exe lie beside this file, the configuration in ..\config.
@rem
@rem   client.cmd start w32time       configure the service for high accuracy and start it, old values first into the undo file
@rem   client.cmd start timeservice   start bw-timed.exe as a job; it touches neither clock nor settings
@rem   client.cmd hold                holdover: use no source, keep the rate
@rem   client.cmd resume              use the time server again; a bw-timed.exe that was ended is started anew
@rem   client.cmd status              NDJSON: whether it runs
@rem   client.cmd stop                put settings and service back as they were; harmless when nothing runs, and twice
@rem
@rem Exit codes are those of ..\..\linux-rt\clock\client.sh: 0 done; 1 something could not be put back; 2 bad argument; 3 not permitted,
@rem or something is missing; 4 not in this state; 5 an earlier run cannot be undone.
@echo off
setlocal
set "run=%~dp0.."
if not defined BENCHWRIGHT_STATE set "BENCHWRIGHT_STATE=%ProgramFiles%\Benchwright\state"
rem An undo file of its own: provisioning has another one in the folder above.
set "BENCHWRIGHT_STATE=%BENCHWRIGHT_STATE%\clock"
rem What bw-timed.exe publishes; its programs know no other place.
set "page=%ProgramFiles%\Benchwright\time\page"
set stack=w32time
if exist "%run%\stack" set /p stack=<"%run%\stack"
if "%~1"=="start" goto start
if "%~1"=="hold" goto hold
if "%~1"=="resume" goto resume
if "%~1"=="status" goto status
if "%~1"=="stop" goto stop
echo client.cmd: unknown verb "%~1"; allowed: start, hold, resume, status, stop>&2
exit /b 2

:start
if "%~2"=="timeservice" goto start_timeservice
if not "%~2"=="w32time" (
    echo client.cmd: unknown stack "%~2"; allowed: w32time, timeservice>&2
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
>"%run%\stack" echo w32time
exit /b 0

:start_timeservice
call :put_back >nul
if errorlevel 1 (
    echo client.cmd: what an earlier run has left cannot be put back>&2
    exit /b 5
)
call :run_timeservice
if errorlevel 1 exit /b 3
>"%run%\stack" echo timeservice
exit /b 0

:run_timeservice
if not exist "%~dp0bw-timed.exe" (
    echo client.cmd: there is no bw-timed.exe beside this file>&2
    exit /b 3
)
set arguments=
for /f "usebackq eol=# delims=" %%a in ("%run%\config\bw-timed.arguments") do set arguments=%%a
if not exist "%run%\log" mkdir "%run%\log"
if not exist "%ProgramFiles%\Benchwright\time" mkdir "%ProgramFiles%\Benchwright\time"
if exist "%run%\log\rc" del "%run%\log\rc"
"%~dp0bw-job.exe" start "%run%\log" "%~dp0bw-timed.exe" %arguments%
if errorlevel 1 exit /b 3
rem It is there, or has ended already, before anybody asks: it looks at the counter first. The program that is called is a pause.
for /l %%n in (1,1,200) do if not exist "%page%" if not exist "%run%\log\rc" "%~dp0bw-job.exe" read "%run%\log\pid" >nul 2>nul
exit /b 0

:hold
if "%stack%"=="timeservice" (
    "%~dp0bw-timectl.exe" hold >nul
    if errorlevel 1 exit /b 4
    exit /b 0
)
w32tm /config /syncfromflags:no /update >nul
if errorlevel 1 exit /b 4
exit /b 0

:resume
if "%stack%"=="timeservice" (
    if exist "%run%\log\rc" goto resume_ended
    "%~dp0bw-timectl.exe" resume >nul
    if errorlevel 1 exit /b 4
    exit /b 0
)
w32tm /config /syncfromflags:manual /update >nul
if errorlevel 1 exit /b 4
exit /b 0

:resume_ended
call :run_timeservice
if errorlevel 1 exit /b 4
exit /b 0

:status
set running=false
if "%stack%"=="timeservice" goto status_timeservice
sc query W32Time 2>nul | find "RUNNING" >nul
if not errorlevel 1 set running=true
echo {"type":"daemon","name":"W32Time","running":%running%,"exit_code":null,"last_words":""}
exit /b 0

:status_timeservice
set code=null
if exist "%run%\log\pid" set running=true
if exist "%run%\log\rc" (
    set running=false
    set /p code=<"%run%\log\rc"
)
set words=
if exist "%run%\log\err" for /f "usebackq delims=" %%l in ("%run%\log\err") do set words=%%l
if defined words set "words=%words:\=/%"
if defined words set words=%words:"=%
echo {"type":"daemon","name":"bw-timed","running":%running%,"exit_code":%code%,"last_words":"%words%"}
exit /b 0

:stop
call :put_back
exit /b %ERRORLEVEL%

rem The service is stopped first: it reads the settings that come back when it starts again.
:put_back
if "%stack%"=="timeservice" "%~dp0bw-job.exe" stop "%run%\log" >nul 2>nul
"%~dp0bw-job.exe" end "%run%\log" >nul 2>nul
if exist "%page%" del "%page%"
if exist "%run%\stack" del "%run%\stack"
if not exist "%BENCHWRIGHT_STATE%\undo" exit /b 0
net stop W32Time >nul 2>nul
"%~dp0bw-provision.exe" restore
exit /b %ERRORLEVEL%
