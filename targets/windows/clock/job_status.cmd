@rem SPDX-License-Identifier: Apache-2.0
@rem Print how the daemon is that a clock stack has started as a job with %run%\log. Called by its file of stacks\: job_status.cmd NAME
@echo off
setlocal
set running=false
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
echo {"type":"daemon","name":"%~1","running":%running%,"exit_code":%code%,"last_words":"%words%"}
