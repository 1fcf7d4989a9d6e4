import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type UploadScene, uploadScene } from '../../../test/fixtures/upload-scene.ts'
import { type Anvil, anvilMissing, startAnvil } from '../../../test/servers/anvil.ts'

const skip = { skip: anvilMissing }
/** A chain of their own: the base fee is that of all accounts. */
let anvil: Anvil

before(async () => {
  if (anvilMissing === false) anvil = await startAnvil()
})
after(() => anvil?.stop())

const postponed = { code: 'ERR_POSTPONED' }
const crash = new Error('crashed')
const crashAt = (step: string) => ({
  onStep(at: string): void {
    if (at === step) throw crash
  },
})

/** Far above what the first upload offers. */
const HIGH = '0xe8d4a51000'
const LOW = '0x3b9aca00'

/** Without it, the base fee falls with every block. */
async function mineAtFee(fee: string): Promise<void> {
  await anvil.call('anvil_setNextBlockBaseFeePerGas', [fee])
  await anvil.mine(1)
}

async function finishAtHighFee(scene: UploadScene, id: string): Promise<void> {
  for (let runs = 0; runs < 12 && scene.row(id)?.status !== 'confirmed'; runs += 1) {
    await scene
      .run(id)
      .catch((error: Error) => assert.equal(Reflect.get(error, 'code'), 'ERR_POSTPONED', error.message))
    await scene.clock.advance('1m')
    await mineAtFee(HIGH)
  }
  assert.equal(scene.row(id)?.status, 'confirmed')
}

// X099
test('a forgotten upload that waits in the pool with fees too low does not hold back the next one', skip, async (t) => {
  const scene = await uploadScene(t, anvil)
  await mineAtFee(LOW)
  const [first, second] = [scene.addLearning('First.'), scene.addLearning('Second.')]
  await assert.rejects(scene.run(first), postponed)
  await mineAtFee(HIGH)
  await assert.rejects(scene.run(second), postponed)
  scene.database.prepare('DELETE FROM learnings WHERE id = ?').run(first)
  await finishAtHighFee(scene, second)
  assert.deepEqual(await scene.events(first), [])
})

// X099
test('an upload without a job whose fees are too low gets higher ones from the next one', skip, async (t) => {
  for (const step of ['transaction-stored', 'submission-stored']) {
    const scene = await uploadScene(t, anvil)
    await mineAtFee(LOW)
    const [first, second] = [scene.addLearning('First.'), scene.addLearning('Second.')]
    await assert.rejects(scene.run(first, crashAt(step)), crash)
    await mineAtFee(HIGH)
    await assert.rejects(scene.run(second), postponed)
    await finishAtHighFee(scene, second)
    assert.equal((await scene.events(first)).length, 1, step)
    await finishAtHighFee(scene, first)
    assert.equal(scene.row(first)?.status, 'confirmed')
  }
})
