import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Rig } from './rig.ts'

const ENTRIES = ['a', 'b', 'c', 'd', 'e']
const STEPS = 150

/** mulberry32: small, seeded, good enough to choose steps. */
function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** What the queue promises at any moment, whatever was done to it. */
function checkNow(rig: Rig): void {
  assert.ok(rig.running <= 3, `${rig.running} embeddings at once`)
  const stats = rig.queue.getQueueStats()
  assert.equal(stats.pending, stats.uniqueEntries)
  assert.ok(stats.pending + stats.retrying <= ENTRIES.length, 'more versions wait than there are entries')
  assert.ok(stats.inFlight <= 3, `${stats.inFlight} in flight`)
}

async function walk(seed: number): Promise<void> {
  const random = seeded(seed)
  const pick = <Item>(items: readonly Item[]): Item | undefined => items[Math.floor(random() * items.length)]
  const rig = new Rig({ hold: true, maxRetries: 2 })
  const newest = new Map<string, string>()
  const open = new Set<number>()
  let seen = 0
  for (let step = 0; step < STEPS; step += 1) {
    const entry = pick(ENTRIES) ?? 'a'
    const roll = random()
    if (roll < 0.45) {
      rig.enqueue(entry, `${entry}${step}`)
      newest.set(entry, `${entry}${step}`)
    } else if (roll < 0.5) {
      rig.queue.cancel('guideline', entry)
      newest.delete(entry)
    } else if (roll < 0.9) {
      const index = pick([...open])
      if (index !== undefined) {
        open.delete(index)
        if (random() < 0.6) rig.call(index).succeed()
        else rig.call(index).fail(new Error('boom'))
      }
    } else {
      await rig.clock.advance(Math.floor(random() * 3_000))
    }
    if (random() < 0.7) await rig.settle()
    for (; seen < rig.calls.length; seen += 1) open.add(seen)
    const held = [...open].map((index) => rig.call(index)).filter(({ signal }) => !signal.aborted)
    assert.equal(new Set(held.map(({ key }) => key)).size, held.length, 'two versions of an entry at once')
    if (held.length === rig.running) checkNow(rig)
  }
  await finish(rig)
  for (const entry of ENTRIES) {
    const seqs = rig.calls.filter(({ key }) => key === `guideline:${entry}`).map(({ seq }) => seq)
    assert.deepEqual(
      seqs,
      [...seqs].sort((one, other) => one - other),
      'an older version ran after a newer one',
    )
    const dead = rig.queue.dlq().find(({ entryId }) => entryId === entry)
    const expected = newest.get(entry)
    if (expected === undefined) continue
    assert.equal(dead?.versionId ?? rig.stored(entry), expected, `entry ${entry} ended without its newest version`)
  }
  await rig.close()
}

/** Answers every call that is open or comes until nothing is left. */
async function finish(rig: Rig): Promise<void> {
  for (let round = 0; round < 200; round += 1) {
    for (const call of rig.calls) call.succeed()
    await rig.clock.advance(round === 0 ? 0 : 500)
    const { pending, inFlight, retrying } = rig.queue.getQueueStats()
    if (pending + inFlight + retrying === 0) return
  }
  assert.fail('the queue did not come to rest')
}

// C04 C05 C13 C20 C32 X130 X131 X133 X136
test('random updates, failures, cancellations and pauses keep every promise', async (t) => {
  const first = Number(process.env.MILLRACE_SEED ?? Date.now() % 1_000_000)
  t.diagnostic(`MILLRACE_SEED=${first}`)
  for (let seed = first; seed < first + 20; seed += 1) {
    try {
      await walk(seed)
    } catch (error) {
      throw new Error(`with MILLRACE_SEED=${seed}`, { cause: error })
    }
  }
})
