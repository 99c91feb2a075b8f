#!/usr/bin/env node
import { runCommandLine } from './command-line.ts';
import { guardProcess } from './report-failure.ts';

guardProcess(process);
process.exitCode = await runCommandLine(process.argv.slice(2), process);
