/** A worker for the tests of this folder. */
import type { LogLine, TestMill } from '../../src/testing/index.ts'
import {
  BaseWorker,
  type HookedJob,
  type Metrics,
  type WorkerConfig,
  type WorkerJob,
  type WorkerOutlets,
} from './index.ts'

type Process = (data: unknown, job: WorkerJob) => unknown

/** A worker that does what it is told, and notes which of its hooks were called. */
export class Told extends BaseWorker {
  readonly calls: unknown[][] = []
  readonly #process: Process

  constructor(run: Process, config: WorkerConfig = {}, outlets: WorkerOutlets = {}, type = 'slack-sync') {
    super(type, config, outlets)
    this.#process = run
  }

  async process(data: unknown, job: WorkerJob): Promise<unknown> {
    this.calls.push(['process'])
    return this.#process(data, job)
  }

  override onStart(job: HookedJob): void {
    this.calls.push(['onStart', job.attempt])
  }

  override onComplete(_job: HookedJob, result: unknown): void {
    this.calls.push(['onComplete', result])
  }

  override onFailed(_job: HookedJob, error: unknown, final: boolean): void {
    this.calls.push(['onFailed', error, final])
  }

  override onProgress(_job: HookedJob, progress: unknown): void {
    this.calls.push(['onProgress', progress])
  }
}

/** Where a worker writes to, kept. */
export function outletsOf({ clock }: Pick<TestMill, 'clock'>) {
  const counted: string[] = []
  const timed: [string, number][] = []
  const lines: LogLine[] = []
  const write = (level: LogLine['level']) => (text: string, fields?: LogLine['fields']) =>
    void lines.push({ level, text, fields: { ...fields } })
  const metrics: Metrics = {
    increment: (name) => void counted.push(name),
    timing: (name, ms) => void timed.push([name, ms]),
  }
  const log = { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') }
  return { counted, timed, lines, outlets: { clock, metrics, log } }
}

/** Three starts at once, one after the other. */
export const again = { attempts: 3, backoff: { type: 'fixed', delay: 0 } } as const
