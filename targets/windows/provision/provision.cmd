@rem SPDX-License-Identifier: Apache-2.0
@rem Prepare a Windows machine to be measured, say what it is, and put it back. Run as an administrator, from cmd.exe:
@rem   provision.cmd [--interface "NAME"] check^|apply^|restore^|facts
@rem `restore` first takes off the clock stack that a killed run has left: its undo file is another one.
@echo off
setlocal
set state=%BENCHWRIGHT_STATE%
if not defined BENCHWRIGHT_STATE set "state=%ProgramFiles%\Benchwright\state"
set verb=
for %%a in (%*) do set verb=%%~a
if not "%verb%"=="restore" goto run
if not exist "%state%\clock\undo" goto run
call "%~dp0..\clock\script\client.cmd" stop
if errorlevel 1 exit /b %ERRORLEVEL%
:run
"%~dp0bw-provision.exe" %*
exit /b %ERRORLEVEL%
