import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addCell, Block, type Cell, decodeBlock, emptyCell, encodeBlock, OTHERS, TYPES_MAX } from './block.ts'
import { BUCKETS, bucketOf, coarsened, longestOf, percentileOf } from './buckets.ts'
import { HISTORY_BYTES_MAX, RESOLUTIONS } from './resolutions.ts'
import { addTally, TypeTally } from './tally.ts'

/** Seeded, so that a failure can be repeated. */
function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

function randomCell(random: () => number): Cell {
  const cell = emptyCell()
  const attempts = Math.floor(random() * 50)
  for (let one = 0; one < attempts; one += 1) {
    const bucket = bucketOf(10 ** (random() * 7))
    cell.run.set(bucket, (cell.run.get(bucket) ?? 0) + 1)
    if (random() < 0.2) cell.failed += 1
    else cell.completed += 1
  }
  return cell
}

const totalOf = (block: Block) => {
  const sum = emptyCell()
  for (const types of block.cells.values()) for (const cell of types.values()) addCell(sum, cell)
  return { ...sum, timed: [...sum.run.values()].reduce((all, times) => all + times, 0) }
}

test('a duration is in a bucket that is at most an eighth too long, up to two years', () => {
  const random = randomFrom(1)
  for (let round = 0; round < 20_000; round += 1) {
    const ms = 0.125 * 2 ** (random() * 38.8)
    const longest = longestOf(bucketOf(ms))
    assert.ok(longest > ms && longest <= ms * 1.125, `${ms} ms is counted as ${longest}`)
  }
  assert.equal(longestOf(bucketOf(0)), 0.125)
  assert.equal(longestOf(bucketOf(-5)), 0.125)
  assert.equal(bucketOf(Number.MAX_VALUE), BUCKETS - 1)
})

test('percentiles of added buckets are those of all durations, not a mean of percentiles', () => {
  const [fast, slow] = [emptyCell(), emptyCell()]
  fast.run.set(bucketOf(10), 990)
  slow.run.set(bucketOf(10_000), 10)
  addCell(fast, slow)
  assert.equal(percentileOf(fast.run, 0.5), longestOf(bucketOf(10)))
  assert.equal(percentileOf(fast.run, 0.99), longestOf(bucketOf(10)))
  assert.equal(percentileOf(fast.run, 0.995), longestOf(bucketOf(10_000)))
  assert.equal(percentileOf(new Map(), 0.5), null)
})

test('wider buckets never shorten a duration, and lose none', () => {
  const random = randomFrom(2)
  for (let level = 0; level <= 9; level += 1) {
    const { run } = randomCell(random)
    const coarse = coarsened(run, level)
    const sum = (buckets: ReadonlyMap<number, number>): number =>
      [...buckets.values()].reduce((all, one) => all + one, 0)
    assert.equal(sum(coarse), sum(run))
    for (const share of [0.5, 0.95, 0.99]) {
      assert.ok((percentileOf(coarse, share) ?? 0) >= (percentileOf(run, share) ?? 0))
    }
    assert.deepEqual(coarsened(coarse, level), coarse)
  }
})

test('sums are the same in every resolution, whatever the seconds hold', () => {
  for (let seed = 1; seed <= 30; seed += 1) {
    const random = randomFrom(seed)
    const said = new Block(Date.UTC(2026, 0, 1, 5, 59, 30), 1_000)
    for (let step = 0; step < 60; step += 1) {
      for (const type of ['a', 'b', 'c']) if (random() < 0.5) addCell(said.cell(step, type), randomCell(random))
    }
    const tally = { name: 'w', writer: 'w', seq: 0, block: said }
    for (const { stepMs, steps, bytesMax } of Object.values(RESOLUTIONS)) {
      const sums = emptyCell()
      const blockMs = stepMs * steps
      const firstMs = Math.floor(said.fromMs / blockMs) * blockMs
      for (let fromMs = firstMs; fromMs < said.fromMs + 60_000; fromMs += blockMs) {
        const block = new Block(fromMs, stepMs)
        addTally(block, tally, steps)
        const read = decodeBlock(encodeBlock(block, { bytesMax }))
        assert.ok(read !== null)
        addCell(sums, totalOf(read))
      }
      const { completed, failed, timed } = totalOf(said)
      const timedSum = [...sums.run.values()].reduce((all, times) => all + times, 0)
      assert.deepEqual([sums.completed, sums.failed, timedSum], [completed, failed, timed], `seed ${seed}`)
    }
  }
})

test('a block takes a tally once', () => {
  const block = new Block(0, 60_000)
  const said = new Block(1_000, 1_000)
  said.cell(0, 'a').completed = 3
  const tally = { name: 'w', writer: 'w', seq: 4, block: said }
  assert.equal(addTally(block, tally, 10), true)
  block.seen = new Map([['w', 4]])
  const again = decodeBlock(encodeBlock(block, { bytesMax: 10_000 }))
  assert.ok(again !== null)
  assert.equal(addTally(again, tally, 10), false)
  assert.equal(totalOf(again).completed, 3)
})

test('a block stays within its bytes and keeps its counts, however many types and durations it has', () => {
  const random = randomFrom(3)
  for (const { stepMs, steps, bytesMax } of Object.values(RESOLUTIONS)) {
    const block = new Block(Date.UTC(2026, 0, 1), stepMs)
    for (let step = 0; step < steps; step += 1) {
      block.sampled.add(step)
      for (let type = 0; type < 40; type += 1) {
        const cell = block.cell(step, `${'long-name-of-a-type-'.repeat(5)}${type}`)
        for (let bucket = type % 4; bucket < BUCKETS; bucket += 4) {
          cell.run.set(bucket, 1 + Math.floor(random() * 100_000))
          cell.wait.set(bucket, 1 + Math.floor(random() * 100_000))
        }
        cell.completed = 1_000_000 + type
        cell.depth = { ready: 1_000_000, delayed: 1_000_000, inProgress: 1_000, dead: 100_000 }
      }
    }
    block.seen = new Map(Array.from({ length: 500 }, (_, at) => [`writer${at}`.padEnd(8, 'x'), 1_000_000]))
    const text = encodeBlock(block, { bytesMax })
    assert.ok(Buffer.byteLength(text) <= bytesMax, `${Buffer.byteLength(text)} of ${bytesMax} bytes`)
    const read = decodeBlock(text)
    assert.ok(read !== null)
    assert.equal(totalOf(read).completed, totalOf(block).completed)
    assert.equal(totalOf(read).timed, totalOf(block).timed)
    const depths = [...(read.cells.get(0)?.values() ?? [])].map(({ depth }) => depth.ready)
    assert.equal(
      depths.reduce((sum, ready) => sum + ready, 0),
      40 * 1_000_000,
      'the jobs of all others are added up',
    )
  }
})

test('the busiest types are kept apart, and the others are one sum', () => {
  const block = new Block(0, 60_000)
  for (let type = 0; type < TYPES_MAX + 5; type += 1) block.cell(0, `type${type}`).completed = 100 + type
  const read = decodeBlock(encodeBlock(block, { bytesMax: RESOLUTIONS.minute.bytesMax }))
  assert.ok(read !== null)
  assert.equal(read.types().length, TYPES_MAX + 1)
  assert.deepEqual([read.types().includes('type4'), read.types().includes('type5')], [false, true])
  assert.equal(read.cells.get(0)?.get(OTHERS)?.completed, 100 + 101 + 102 + 103 + 104)
})

test('the whole history of a store takes less than 20 MB', () => {
  assert.ok(HISTORY_BYTES_MAX < 18_000_000, `${HISTORY_BYTES_MAX} bytes`)
})

test('a tally is by the second in which an attempt ended, with its run and its wait', () => {
  const tally = new TypeTally(1_000_000)
  tally.add('complete', 5_000, 5_100, 1_004_900)
  tally.add('retry', 5_000, 5_990, null)
  tally.add('dead', 6_000, 6_200, null)
  const [first, second, ...more] = tally.take(1_000_000)
  assert.deepEqual(more, [])
  assert.ok(first && second)
  assert.deepEqual([first.atMs, first.cell.completed, first.cell.failed, first.cell.died], [1_005_000, 1, 1, 0])
  assert.deepEqual([...first.cell.wait], [[bucketOf(100), 1]])
  assert.deepEqual([second.atMs, second.cell.failed, second.cell.died], [1_006_000, 1, 1])
  assert.deepEqual(tally.take(1_000_000), [])
})
