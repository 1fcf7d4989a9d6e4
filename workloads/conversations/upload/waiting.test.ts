import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { isMillraceError } from '../../../src/errors.ts'
import { defineJob } from '../../../src/job/definition.ts'
import { drain } from '../../../src/testing/drain.ts'
import { openForTest, seededRandom } from '../../../src/testing/open-for-test.ts'
import { parseDurationMs } from '../../../src/time/duration.ts'
import { type UploadScene, uploadScene } from '../../../test/fixtures/upload-scene.ts'
import { type Anvil, anvilMissing, startAnvil } from '../../../test/servers/anvil.ts'
import { MINE_UPLOAD } from '../jobs/contract.ts'
import { uploadPayload } from '../jobs/payloads.ts'
import { mineUpload } from './mine-upload.ts'

let anvil: Anvil
const skip = { skip: anvilMissing }

before(async () => {
  if (anvilMissing === false) anvil = await startAnvil()
})
after(() => anvil?.stop())

// B77 X100 X101
test('waiting for the chain and for a connection holds neither a slot nor an attempt', skip, async (t) => {
  await using stage = await openForTest()
  const { mill, clock } = stage
  const scene = await uploadScene(t, anvil)
  // One attempt: a wait that used it would end as a dead letter.
  const upload = defineJob({
    type: MINE_UPLOAD,
    payload: uploadPayload,
    attempts: 1,
    run: mineUpload({ ...scene.parts, clock }),
  })
  const id = scene.addLearning()
  const receipt = await mill.enqueue(upload, scene.payloadOf(id))
  scene.store.disturb = (response) => void response.socket?.destroy()
  const waits: string[] = []
  for (let blocks = 0; blocks < 10 && (await mill.job(receipt.id))?.state !== 'completed'; blocks += 1) {
    // `drain` returns when nothing is ready: no handler is left waiting in its slot.
    await drain(mill, [upload])
    waits.push(String((await mill.job(receipt.id))?.state))
    scene.store.disturb = null
    await anvil.mine(1)
    await clock.advance('60s')
  }
  assert.deepEqual(waits, ['queued', 'queued', 'queued', 'queued', 'completed'])
  assert.equal(scene.row(id)?.status, 'confirmed')
})

const BLOCK_MS = 6_000
const IPFS_MS = 2_000

/** From the start of the job until it is confirmed, on the clock of the scene, with blocks and IPFS as slow as that. */
async function timeOf(scene: UploadScene, id: string): Promise<number> {
  const startedMs = scene.clock.nowMs()
  let mined = Math.floor(startedMs / BLOCK_MS)
  const pass = async (ms: number): Promise<void> => {
    await scene.clock.advance(ms)
    const due = Math.floor(scene.clock.nowMs() / BLOCK_MS)
    if (due > mined) await anvil.mine(due - mined)
    mined = due
  }
  for (;;) {
    try {
      await scene.run(id, { onStep: async (step) => (step === 'ipfs-added' ? pass(IPFS_MS) : undefined) })
      return scene.clock.nowMs() - startedMs
    } catch (error) {
      if (!isMillraceError(error, 'ERR_POSTPONED')) throw error
      await pass(parseDurationMs(Reflect.get(error, 'delay'), 'delay'))
    }
  }
}

// B80 B175
test('with blocks every 6 s and an IPFS that takes 2 s, 95 of 100 uploads take at most 30 s', skip, async (t) => {
  const scene = await uploadScene(t, anvil)
  const random = seededRandom(175)
  const times: number[] = []
  for (let count = 0; count < 20; count += 1) {
    await scene.clock.advance(Math.floor(random() * BLOCK_MS))
    times.push(await timeOf(scene, scene.addLearning(`Learning ${count}.`)))
  }
  const sorted = times.toSorted((one, other) => one - other)
  t.diagnostic(`seed 175, p50 ${sorted[9]} ms, p95 ${sorted[18]} ms`)
  assert.ok((sorted[18] ?? Number.POSITIVE_INFINITY) <= 30_000)
})
