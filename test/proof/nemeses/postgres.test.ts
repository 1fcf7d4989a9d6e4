import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { z } from 'zod'
import { defineJob, type Mill, open } from '../../../src/index.ts'
import { openPostgresStore, stopPostgresServers } from '../engines/postgres.ts'
import type { Crew, Nemesis, Scene, Store } from '../scene.ts'

const job = defineJob({ type: 'plain', payload: z.object({ n: z.number() }), lease: '1s', attempts: 10 })
const nobody: Crew = {
  processes: [],
  replace: () => Promise.reject(new Error('nobody is there')),
  launch: () => {
    throw new Error('nobody is there')
  },
}

let store: Store
let mill: Mill

before(async () => {
  store = await openPostgresStore({ seed: 1, folder: '' })
  mill = await open(store.url)
  await mill.work([job.handledBy(async ({ payload }) => payload.n)], { reap: '500ms' })
})

after(async () => {
  await mill.close()
  await store.destroy()
  await stopPostgresServers()
})

/** As short as each of them can be. */
const shortest = (): number => 0

async function strike(nemesis: Nemesis): Promise<readonly string[]> {
  const noted: string[] = []
  const scene: Scene = {
    store,
    crew: nobody,
    folder: '',
    during: async (fault, act) => {
      noted.push(`struck ${fault.nemesis}`)
      await act()
      noted.push('healed')
    },
  }
  await nemesis.strike(scene, shortest)
  return noted
}

/** It may meet what is left of the fault: then its outcome is unknown, and another one is asked for. */
async function works(n: number): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      const receipt = await mill.enqueue(job, { n })
      assert.equal(await mill.result(receipt, { timeout: '20s' }), n)
      return
    } catch (error) {
      if (tries === 10) throw error
    }
  }
}

test('every fault of Postgres strikes, heals itself, and jobs run again', { timeout: 120_000 }, async () => {
  await works(0)
  for (const [at, nemesis] of store.nemeses.entries()) {
    if ((nemesis.excuse?.(store) ?? null) !== null) continue
    const s = performance.now()
    assert.deepEqual(await strike(nemesis), [`struck ${nemesis.name}`, 'healed'])
    const m = performance.now()
    await works(at + 1)
    console.log(nemesis.name, Math.round(m - s), Math.round(performance.now() - m))
  }
})
