import type { ContenderEntry } from '../contender.ts'

const at = (file: string): string => new URL(file, import.meta.url).href

const NO_OTHER_PROCESS = 'lives in one process'
const NO_WORKER = 'is a loop over statements: it has no worker, no wake-up and no leases to keep'

/** Everything that can be measured, in the order of the tables. Another engine or peer is one more entry here. */
export const CONTENDERS: readonly ContenderEntry[] = [
  {
    name: 'millrace-full',
    title: 'Millrace, SQLite FULL',
    family: 'sqlite',
    notes: 'synchronous=FULL, the default: an acknowledged job survives a power cut.',
    storage: 'millrace-sqlite',
    excused: {},
    module: at('millrace.ts'),
  },
  {
    name: 'millrace-normal',
    title: 'Millrace, SQLite NORMAL',
    family: 'sqlite',
    notes:
      'synchronous=NORMAL: an acknowledged job survives a crash of the process, a power cut may lose the last ones.',
    storage: 'millrace-sqlite',
    excused: {},
    module: at('millrace.ts'),
  },
  {
    name: 'plainjob',
    title: 'plainjob, SQLite NORMAL',
    family: 'sqlite',
    notes:
      'plainjob on better-sqlite3 with its own settings: synchronous=NORMAL, a poll every second, one job at a time. A started job that is never finished is taken up again after 30 minutes.',
    storage: 'plainjob',
    excused: {},
    module: at('plainjob.ts'),
  },
  {
    name: 'bare-store',
    title: 'bare SQLite, FULL',
    family: 'sqlite',
    notes:
      'The ceiling: the canonical table and indexes, synchronous=FULL, one transaction that completes a batch of 100 and claims the next. No retries, fences, events or timeouts.',
    storage: 'bare-store',
    excused: { pickup: NO_WORKER, idle: NO_WORKER, memory: NO_WORKER, claim: NO_WORKER },
    module: at('bare-store.ts'),
  },
  {
    name: 'millrace-memory',
    title: 'Millrace, memory',
    family: 'memory',
    notes: 'Nothing survives the process: what the core itself costs.',
    storage: 'millrace-memory',
    excused: {
      pickup: NO_OTHER_PROCESS,
      processes: NO_OTHER_PROCESS,
      claim: 'has no store to fill from outside',
      memory: 'has no store to fill from outside',
    },
    module: at('millrace.ts'),
  },
]

/** What a run measures unless told: all that keeps jobs on disk. */
export const CONTENDERS_STANDARD: readonly string[] = ['millrace-full', 'millrace-normal', 'plainjob', 'bare-store']
