import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readLoad, report } from './main.ts'
import { choose, type EngineCost, type Load, peakRate, planFor } from './model.ts'

const cost = (engine: EngineCost['engine'], more: Partial<EngineCost> = {}): EngineCost => ({
  engine,
  ...{ enqueueUs: 40, runUs: 60, serverUs: engine === 'sqlite' ? 0 : 100 },
  ...{ drainedPerSecond: 20_000, drainedByFourPerSecond: 10_000, pickupP99Ms: 5, bytesPerJob: 1_000 },
  ...more,
})
const load: Load = { jobsPerDay: 86_400_000, p99Ms: 100, peak: 2, handlerMs: 0, keepDays: 1, cores: 8, memoryGb: 1_000 }
const MACHINE = { cores: 2, processor: 'test', memoryGiB: 1, platform: 'test', versions: {}, loadBefore: 0 }

test('the busiest second is the mean times the peak', () => {
  assert.equal(peakRate(load), 2_000)
})

test('a store is used by the rate against what its servers carry, and workers by their processor time', () => {
  const plan = planFor(cost('postgres'), load)
  // 100 µs on eight cores carry 80 thousand; 2 000 jobs of 100 µs take 0.2 cores.
  assert.deepEqual(
    { ...plan, utilisation: plan.utilisation.toFixed(3) },
    {
      engine: 'postgres',
      refusal: null,
      servers: 1,
      processes: 1,
      utilisation: '0.025',
      storedGb: 86.4,
    },
  )
  assert.equal(planFor(cost('postgres'), { ...load, handlerMs: 7 }).processes, Math.ceil((2_000 * 0.0071) / 0.7))
})

test('Redis has one thread a server, and Kafka as many copies as it takes to lose a broker', () => {
  assert.equal(planFor(cost('redis'), { ...load, peak: 20 }).servers, Math.ceil(20_000 / 10_000 / 0.7))
  assert.equal(planFor(cost('kafka'), load).servers, 3)
  assert.equal(planFor(cost('kafka'), { ...load, peak: 200 }).servers, Math.ceil(200_000 / (80_000 / 3) / 0.7))
})

test('what Redis keeps must fit into the memory of its servers', () => {
  // 86.4 GB a day into 70 % of 64 GB each.
  assert.equal(planFor(cost('redis'), { ...load, memoryGb: 64 }).servers, 2)
})

test('SQLite is refused above what one file or one machine carries, and Postgres above one primary', () => {
  assert.match(planFor(cost('sqlite'), { ...load, peak: 8 }).refusal ?? '', /one file carries 7000\/s/)
  assert.match(planFor(cost('sqlite'), { ...load, handlerMs: 10 }).refusal ?? '', /one machine, and the work needs/)
  assert.match(planFor(cost('postgres'), { ...load, peak: 100 }).refusal ?? '', /split the types over 2 databases/)
})

test('a p99 that is hardly above that of an idle system leaves little of the store, and one below it nothing', () => {
  assert.equal(planFor(cost('redis'), { ...load, p99Ms: 6 }).servers, 2)
  assert.match(planFor(cost('redis'), { ...load, p99Ms: 5 }).refusal ?? '', /5\.0 ms even when nothing else waits/)
})

test('the first engine that carries the load is chosen', () => {
  const plans = (of: Load) => (['sqlite', 'postgres', 'kafka'] as const).map((engine) => planFor(cost(engine), of))
  assert.equal(choose(plans(load))?.engine, 'sqlite')
  assert.equal(choose(plans({ ...load, peak: 10 }))?.engine, 'postgres')
  assert.equal(choose(plans({ ...load, peak: 100 }))?.engine, 'kafka')
  assert.equal(choose(plans({ ...load, p99Ms: 1 })), null)
})

test('the command reads amounts and durations, and prints what it takes for granted', () => {
  const read = readLoad(['--jobs-per-day', '500M', '--p99', '100ms'])
  assert.deepEqual(read, { jobsPerDay: 5e8, p99Ms: 100, peak: 3, handlerMs: 1, keepDays: 7, cores: 8, memoryGb: 64 })
  assert.throws(() => readLoad(['--jobs-per-day', 'many']), /--jobs-per-day is 'many'; give a number above 0/)
  const measured = { date: '2026-11-17', machine: MACHINE, jobs: 1, costs: [cost('sqlite'), cost('kafka')], growth: [] }
  const text = report([measured], read).join('\n')
  assert.match(text, /17,361 jobs per second/)
  assert.match(text, /Start with kafka\./)
  assert.match(text, /tried on 2 cores only/)
  assert.throws(() => report([], read), /no costs were measured yet; run npm run bench:capacity first/)
})
