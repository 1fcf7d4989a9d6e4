import type { Engine, Inspector, TypeCounts } from '../../src/engine/engine.ts'
import type { Mutant } from './mutant.ts'

const inspecting = (right: Engine, change: (inspector: Inspector) => Partial<Inspector>): Partial<Engine> =>
  right.inspector === undefined ? {} : { inspector: { ...right.inspector, ...change(right.inspector) } }

export const lookingMutants: readonly Mutant[] = [
  {
    flaw: 'waiting for a job never ends',
    killer: 'waiting for a job ends as soon as another view completes it',
    alter: () => ({ engine: (right) => inspecting(right, () => ({ waitFor: () => new Promise(() => {}) })) }),
  },
  {
    flaw: 'waiting for a job answers at once, whatever the job does',
    killer: 'waiting for a job ends as soon as another view completes it',
    alter: () => ({
      engine: (right) => inspecting(right, ({ find }) => ({ waitFor: async (id) => (await find([id]))[0] ?? null })),
    }),
  },
  {
    flaw: 'a job’s history keeps its oldest lines and loses the newest',
    killer: 'the history of a job has an end: the oldest lines go first, and the line of its enqueue stays',
    alter: () => ({
      engine: (right) =>
        inspecting(right, (inspector) => ({ history: async (id) => (await inspector.history(id)).slice(0, 150) })),
    }),
  },
  {
    flaw: 'nothing of a job’s history is kept',
    killer: 'the history tells a job’s life in order',
    alter: () => ({ engine: (right) => inspecting(right, () => ({ history: async () => [] })) }),
  },
  {
    flaw: 'a failure in the history has its error spread over the detail',
    killer: 'the detail of a line has one shape on every engine',
    alter: () => ({
      engine: (right) =>
        inspecting(right, ({ history }) => ({
          history: async (id) =>
            (await history(id)).map((event) =>
              event.name === 'failed' ? { ...event, detail: { ...Object(event.detail?.error) } } : event,
            ),
        })),
    }),
  },
  {
    flaw: 'jobs are listed oldest first',
    killer: 'jobs are listed newest first, page by page',
    alter: () => ({
      engine: (right) =>
        inspecting(right, ({ list }) => ({ list: async (filter) => [...(await list(filter))].reverse() })),
    }),
  },
  {
    flaw: 'the job that waits longest is the newest one',
    killer: 'the job that has been due longest is found, and none when none is due',
    alter: () => ({
      engine: (right) =>
        inspecting(right, ({ list }) => ({
          oldestDue: async () => (await list({ state: 'queued', limit: 1 }))[0] ?? null,
        })),
    }),
  },
  {
    flaw: 'progress is thrown away',
    killer: 'the last reported progress is shown, in every view',
    alter: () => ({
      consumer: (right) => ({ report: async (lease) => (await right.renew([lease], 500)).length === 0 }),
    }),
  },
  {
    flaw: 'delayed jobs are counted as ready',
    killer: 'a job due later is delayed, and ready when its time has come',
    alter: () => ({
      engine: (right) => ({
        counts: async () => {
          const counts = Object.entries(await right.counts())
          return Object.fromEntries(
            counts.map(([type, of]) => [type, { ...of, ready: of.ready + of.delayed, delayed: 0 }]),
          )
        },
      }),
    }),
  },
  {
    flaw: 'ended jobs are counted as dead',
    killer: 'a cancelled waiting job is never handed out',
    alter: () => ({
      engine: (right) => ({
        counts: async () => {
          const counts: Record<string, TypeCounts> = { ...(await right.counts()) }
          const cancelled = (await right.inspector?.list({ state: 'cancelled', limit: 1_000 })) ?? []
          for (const { type } of cancelled) {
            const { dead, ...rest } = counts[type] ?? { ready: 0, delayed: 0, inProgress: 0, completed: 0, dead: 0 }
            counts[type] = { ...rest, dead: dead + 1 }
          }
          return counts
        },
      }),
    }),
  },
  {
    flaw: 'a list of dead letters contains the jobs that were ended',
    killer: 'a cancelled, superseded or discarded job shows that word as its state and is not listed as a dead letter',
    alter: () => ({
      engine: (right) =>
        inspecting(right, ({ list }) => ({
          list: async (filter) => {
            const jobs = await list(filter)
            if (filter.state !== 'dead_letter') return jobs
            return [...jobs, ...(await list({ ...filter, state: 'cancelled' }))]
          },
        })),
    }),
  },
  {
    flaw: 'a diagnosis looks at nothing',
    killer: 'a diagnosis names what it looked at, and says what to do about all that is not in order',
    alter: () => ({
      engine: () => ({
        diagnose: async () => [],
      }),
    }),
  },
  {
    flaw: 'a diagnosis finds everything in order, whatever is stuck',
    killer: 'a diagnosis finds a lease that ran out longer ago than recovery takes',
    alter: () => ({
      engine: () => ({
        diagnose: async () => [{ severity: 'ok', subject: 'all', detail: 'in order', advice: null }],
      }),
    }),
  },
  {
    flaw: 'a closed engine goes on answering',
    killer: 'a closed engine refuses every call with ERR_CLOSED',
    alter: () => ({ engine: () => ({ close: async () => {} }) }),
  },
]
