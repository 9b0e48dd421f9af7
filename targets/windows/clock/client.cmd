@rem SPDX-License-Identifier: Apache-2.0
@rem The clock stack of a Windows target. Run as an administrator, from cmd.exe; bw-provision.exe, bw-job.exe, bw-timed.exe and
@rem bw-timectl.exe lie beside this file, the configuration in ..\config.
@rem
@rem   client.cmd start STACK   start one, old values first into the undo file; STACK is the name of a file of stacks\
@rem   client.cmd hold          holdover: use no source, keep the rate
@rem   client.cmd resume        use the time server again
@rem   client.cmd status        NDJSON: whether it runs
@rem   client.cmd stop          put settings and service back as they were; harmless when nothing runs, and twice
@rem
@rem stacks\STACK.cmd is called with each of these verbs, and does what is the stack's own. It finds %script%, the folder of this file,
@rem and %run%, the one above; what it starts as a job, with %run%\log, is ended here, and what bw-provision.exe has set is put back.
@rem
@rem Exit codes are those of ..\..\linux-rt\clock\client.sh: 0 done; 1 something could not be put back; 2 bad argument; 3 not permitted,
@rem or something is missing; 4 not in this state; 5 an earlier run cannot be undone.
@echo off
setlocal
set "script=%~dp0"
set "run=%~dp0.."
if not defined BENCHWRIGHT_STATE set "BENCHWRIGHT_STATE=%ProgramFiles%\Benchwright\state"
rem An undo file of its own: provisioning has another one in the folder above.
set "BENCHWRIGHT_STATE=%BENCHWRIGHT_STATE%\clock"
set running=
if exist "%run%\stack" set /p running=<"%run%\stack"
call :find "%running%"
set stack=%found%
if "%~1"=="start" goto start
if "%~1"=="hold" goto to_stack
if "%~1"=="resume" goto to_stack
if "%~1"=="status" goto status
if "%~1"=="stop" goto stop
echo client.cmd: unknown verb "%~1"; allowed: start, hold, resume, status, stop>&2
exit /b 2

:start
call :find "%~2"
if not defined found (
    echo client.cmd: unknown stack "%~2"; allowed: %stacks%>&2
    exit /b 2
)
call :put_back >nul
if errorlevel 1 (
    echo client.cmd: what an earlier run has left cannot be put back>&2
    exit /b 5
)
set stack=%found%
rem Before anything is changed: `stop` asks whose way back it is.
>"%run%\stack" echo %stack%
goto to_stack

:status
if not defined stack exit /b 0
:to_stack
if not defined stack (
    echo client.cmd: no stack runs>&2
    exit /b 4
)
rem Not by `call`, from which Wine comes back with 1 whatever the exit code was: this is the last that is done here.
"%script%stacks\%stack%.cmd" %~1

:stop
call :put_back
exit /b %ERRORLEVEL%

rem Set %found% to a name that one of the files has, and %stacks% to all of them: a name is compared, never used as a way.
:find
set found=
set stacks=
pushd "%script%stacks"
for %%f in (*.cmd) do (
    call :offer "%%~nf"
    if "%%~nf"=="%~1" set "found=%%~nf"
)
popd
exit /b 0

:offer
if defined stacks (set "stacks=%stacks%, %~1") else set "stacks=%~1"
exit /b 0

:put_back
if defined stack call "%script%stacks\%stack%.cmd" stop
"%script%bw-job.exe" end "%run%\log" >nul 2>nul
if not exist "%BENCHWRIGHT_STATE%\undo" goto forget
"%script%bw-provision.exe" restore
if errorlevel 1 exit /b 1
:forget
if exist "%run%\stack" del "%run%\stack"
exit /b 0
