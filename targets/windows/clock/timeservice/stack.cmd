@rem SPDX-License-Identifier: Apache-2.0
@rem The project's time service, as a job: it touches neither clock nor settings. Called by client.cmd with a verb.
@setlocal
@rem What bw-timed.exe publishes; its programs know no other place.
@set "page=%ProgramFiles%\Benchwright\time\page"
@goto %~1

:start
if not exist "%script%bw-timed.exe" (
    echo client.cmd: there is no bw-timed.exe beside this file>&2
    exit /b 3
)
set arguments=
for /f "usebackq eol=# delims=" %%a in ("%run%\config\bw-timed.arguments") do set arguments=%%a
if not exist "%run%\log" mkdir "%run%\log"
if not exist "%ProgramFiles%\Benchwright\time" mkdir "%ProgramFiles%\Benchwright\time"
if exist "%run%\log\rc" del "%run%\log\rc"
"%script%bw-job.exe" start "%run%\log" "%script%bw-timed.exe" %arguments%
if errorlevel 1 exit /b 3
rem It is there, or has ended already, before anybody asks: it looks at the counter first. The program that is called is a pause.
for /l %%n in (1,1,200) do if not exist "%page%" if not exist "%run%\log\rc" "%script%bw-job.exe" read "%run%\log\pid" >nul 2>nul
exit /b 0

:hold
"%script%bw-timectl.exe" hold >nul
if errorlevel 1 exit /b 4
exit /b 0

rem One that was ended is started anew.
:resume
if exist "%run%\log\rc" (
    call :start
    if errorlevel 1 exit /b 4
    exit /b 0
)
"%script%bw-timectl.exe" resume >nul
if errorlevel 1 exit /b 4
exit /b 0

:status
call "%script%job_status.cmd" bw-timed
exit /b 0

:stop
"%script%bw-job.exe" stop "%run%\log" >nul 2>nul
if exist "%page%" del "%page%"
exit /b 0
