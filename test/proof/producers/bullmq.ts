import { fileURLToPath } from 'node:url'
import type { Producer } from '../../../proof/workload/foreign.ts'
import { runProgram } from './program.ts'

/** A program that knows only BullMQ, as docs/bullmq.md says that it may stay. */
const PROGRAM = fileURLToPath(new URL('./bullmq-program.ts', import.meta.url))

/** By BullMQ's `Queue.add`, from a process of its own. Every second job has an id of the program's, the others BullMQ's numbers. */
export function bullmqProducer(url: string): Producer {
  const address = new URL(url)
  const prefix = address.searchParams.get('prefix') ?? 'bull'
  address.search = ''
  return {
    program: 'bullmq',
    // BullMQ's jobs without a priority come before all that have one.
    priority: 1,
    attempts: 3,
    idOf: (type, n) => (n % 2 === 0 ? `${type}#own-${n}` : null),
    async produce(type, jobs) {
      const added = jobs.map(({ n, payload }) => ({ data: payload, ...(n % 2 === 0 && { jobId: `own-${n}` }) }))
      await runProgram({
        program: process.execPath,
        args: [PROGRAM, address.href, prefix, type],
        input: JSON.stringify(added),
      })
    },
  }
}
