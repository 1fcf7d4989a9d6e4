#!/usr/bin/env node
import { run } from './program.ts'
import { systemTerminal } from './terminal.ts'
import { boundYoungHeap } from './young-heap.ts'

boundYoungHeap()
const terminal = systemTerminal()
const exitCode = await run(process.argv.slice(2), terminal)
// A job module may hold sockets or timers of its own, and a handler may ignore its signal: neither keeps a stopped
// process alive. What was printed is flushed first.
await terminal.flush()
process.exit(exitCode)
