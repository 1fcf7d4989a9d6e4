import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { openEngine } from '../../src/engine/open.ts'
import { capabilitiesOf as kafkaCapabilities } from '../../src/engines/kafka/module.ts'
import { systemClock } from '../../src/time/clock.ts'
import { type Abilities, abilitiesOf } from './abilities.ts'
import { generateForeign } from './foreign.ts'
import { type GenerateOptions, generate } from './generate.ts'
import type { Behaviour, Operation, PlannedJob, Program } from './operation.ts'

/** What a program has, by the names of the features. */
function tally({ clients }: Program): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  const count = (name: string): void => void counts.set(name, (counts.get(name) ?? 0) + 1)
  for (const operation of clients.flat()) {
    for (const name of namesOf(operation)) count(name)
    if (!('jobs' in operation)) continue
    for (const job of operation.jobs) {
      for (const name of namesOfJob(job)) count(name)
      for (const behaviour of job.behaviours) for (const name of namesOfBehaviour(behaviour)) count(name)
    }
  }
  return counts
}

function namesOf(operation: Operation): readonly string[] {
  switch (operation.do) {
    case 'enqueue':
      return [`enqueue ${operation.how}`]
    case 'transaction':
      return [`transaction ${operation.end}`]
    case 'schedule':
      return [`schedule, missed ${operation.missed}`]
    case 'replay':
    case 'discard':
    case 'purge':
      return [`${operation.do} ${operation.how}`]
    default:
      return [operation.do]
  }
}

function namesOfJob(job: PlannedJob): readonly string[] {
  const given = ['priority', 'delayMs', 'atMs', 'timeoutMs', 'key', 'tenant', 'extra'] as const
  return [
    `type ${job.type}`,
    ...given.filter((name) => job[name] !== undefined),
    ...(job.backoff === undefined ? [] : [`backoff ${job.backoff.kind}`]),
    ...(job.latest === undefined ? [] : [job.latest.seq === undefined ? 'latest' : 'latest with seq']),
    ...(job.after === undefined ? [] : [`after, if dead ${job.ifDead ?? 'wait'}`]),
    ...(job.version === undefined ? [] : [`version ${job.version}`]),
    ...(job.removeOnComplete === undefined ? [] : [`removeOnComplete ${typeof job.removeOnComplete}`]),
    ...(job.removeOnFail === undefined ? [] : [`removeOnFail ${typeof job.removeOnFail}`]),
  ]
}

function namesOfBehaviour(behaviour: Behaviour): readonly string[] {
  if (behaviour.do === 'hang') return [behaviour.heeds ? 'hang, heeding' : 'hang, deaf']
  return [behaviour.do === 'throw' ? behaviour.how : behaviour.do]
}

/** Of every engine. */
const EVERYWHERE = [
  ...['enqueue one-by-one', 'enqueue many', 'wait', 'mistake', 'timeoutMs', 'key', 'tenant', 'extra'],
  ...[
    'type plain',
    'type narrow',
    'type tenanted',
    'type limited',
    'type urgent',
    'type aged',
    'type critical',
    'type versioned',
  ],
  ...['backoff fixed', 'backoff list', 'backoff exponential', 'version 1'],
  ...['return', 'error', 'non-retryable', 'retry-after', 'offline', 'postpone', 'hang, heeding', 'hang, deaf'],
  ...['report', 'enqueue', 'return-nonsense', 'block'],
  ...['replay one-by-one', 'replay at-once', 'edit', 'discard one-by-one', 'discard at-once', 'undo'],
  ...['purge one-by-one', 'purge at-once'],
]
const WHERE_DECLARED = [
  ...['version 2', 'enqueue flow', 'enqueue repeat', 'transaction commit', 'transaction roll-back', 'cancel', 'result'],
  ...['pause', 'resume', 'sweep', 'crash', 'priority', 'delayMs', 'atMs', 'latest', 'latest with seq'],
  ...['type bounded', 'type fleeting', 'after, if dead wait', 'after, if dead run', 'after, if dead die'],
  ...['schedule, missed skip', 'schedule, missed one', 'schedule, missed all'],
  ...['unschedule', 'pause-schedule', 'resume-schedule', 'run-schedule'],
  ...['removeOnComplete boolean', 'removeOnComplete number', 'removeOnFail boolean', 'removeOnFail number'],
]
/** Of three kinds one is drawn each time: a round may miss one. */
const DRAWN = /^(purge|replay|discard|backoff|remove\w+|after|type|\w+-schedule|unschedule)/

describe('a generated workload', () => {
  let memory: Abilities
  let sqlite: Abilities
  const kafka: Abilities = {
    capabilities: kafkaCapabilities('kafka://127.0.0.1:9092?group=g'),
    facets: ['deadLetters'],
  }
  const options = (abilities: Abilities, seed: number): GenerateOptions => ({
    ...{ seed, abilities, jobs: 1_500, clients: 2 },
    ...{ mayCrash: true, mayBlock: true, hasTransactions: true },
  })

  before(async () => {
    const engine = await openEngine('memory:', { clock: systemClock, migrate: true })
    memory = abilitiesOf(engine)
    sqlite = { ...memory, capabilities: { ...memory.capabilities, transactionalEnqueue: true } }
    await engine.close()
  })

  test('is the same for the same seed, and another for another', () => {
    const [one, same, other] = [7, 7, 8].map((seed) => generate(options(sqlite, seed)))
    assert.deepEqual(one, same)
    assert.notDeepEqual(one, other)
    assert.deepEqual(JSON.parse(JSON.stringify(one)), one)
    const foreign = { seed: 7, jobs: 40, spanMs: 1_000 }
    assert.deepEqual(generateForeign(foreign), generateForeign(foreign))
    assert.equal(generateForeign(foreign).flatMap(({ jobs }) => jobs).length, 40)
  })

  test('has every feature that the engine declares, in each of twenty rounds', () => {
    for (let seed = 1; seed <= 20; seed += 1) {
      const counts = tally(generate(options(sqlite, seed)))
      const missing = [...EVERYWHERE, ...WHERE_DECLARED].filter((name) => !DRAWN.test(name) && !counts.has(name))
      assert.deepEqual(missing, [], `seed ${seed}`)
    }
    const drawn = new Set(
      Array.from({ length: 5 }, (_, seed) => [...tally(generate(options(sqlite, seed))).keys()]).flat(),
    )
    assert.deepEqual(
      [...EVERYWHERE, ...WHERE_DECLARED].filter((name) => !drawn.has(name)),
      [],
    )
  })

  test('has nothing that the engine does not declare, but for what is asked for to be refused', () => {
    const counts = tally(generate(options(kafka, 3)))
    assert.deepEqual(
      WHERE_DECLARED.filter((name) => !name.startsWith('type ') && counts.has(name)),
      [],
    )
    assert.deepEqual(
      EVERYWHERE.filter((name) => !DRAWN.test(name) && !counts.has(name)),
      [],
    )
    assert.ok(counts.has('unsupported'))
    assert.ok(!tally(generate(options(sqlite, 3))).has('unsupported'), 'SQLite can do everything')
    assert.ok(tally(generate(options(memory, 3))).has('unsupported'), 'memory joins no transaction')
  })

  test('has about as many jobs as asked for, most of them short and plain, and each number once', () => {
    const { clients } = generate(options(sqlite, 11))
    const jobs = clients.flat().flatMap((operation) => ('jobs' in operation ? operation.jobs : []))
    assert.ok(jobs.length >= 1_500 && jobs.length < 1_550, String(jobs.length))
    assert.equal(new Set(jobs.map(({ n }) => n)).size, jobs.length)
    const short = jobs.filter(({ behaviours: [first] }) => first?.do === 'return' && first.afterMs <= 20)
    assert.ok(short.length > 0.75 * jobs.length, String(short.length))
  })

  test('spreads its operations over the time that it is given', () => {
    const { clients } = generate({ ...options(sqlite, 5), spanMs: 30_000 })
    for (const operations of clients) {
      const waited = operations.reduce((sum, operation) => sum + (operation.do === 'wait' ? operation.ms : 0), 0)
      assert.ok(waited > 25_000 && waited < 35_000, String(waited))
    }
  })

  test('refuses options that it does not know, and counts that make no sense', () => {
    const misspelt: object = { sead: 1 }
    assert.throws(() => generate({ ...options(sqlite, 1), ...misspelt }), { code: 'ERR_OPTION_INVALID' })
    assert.throws(() => generate({ ...options(sqlite, 1), clients: 0 }), { code: 'ERR_OPTION_INVALID' })
    assert.throws(() => generate({ ...options(sqlite, 1), jobs: 0 }), { code: 'ERR_OPTION_INVALID' })
  })
})
