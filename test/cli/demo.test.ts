import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { anvilMissing } from '../servers/anvil.ts'
import { ROOT, Running, temporaryFolder } from './run.ts'

const DEMO = join(ROOT, 'scripts/demo/conversations/main.ts')
const WORKERS = join(ROOT, 'scripts/demo/workers/main.ts')

/** The address of a server that it says it has started. */
const addressIn = (out: string, step: string): string =>
  new RegExp(`^ +[\\d.]+s {2}${step} .*(http://127\\.0\\.0\\.1:\\d+)`, 'm').exec(out)?.[1] ?? assert.fail(step)

describe('the demonstration of the conversation pipeline', () => {
  // B04 B15 B75 B76 B77 B183 B184 B185 B186 B187
  it('prints what was learnt and that all of it is true, and stops everything', async (t) => {
    const folder = await temporaryFolder(t)
    const demo = new Running(DEMO, [], { env: { TMPDIR: folder } })
    t.after(() => demo.child.kill('SIGKILL'))
    const { code, out, err } = await demo.ended
    assert.deepEqual([code, err], [0, ''], out)
    assert.match(out, /prompt +12 of 12 through the hook in \d+ ms; replaced: email$/m)
    assert.match(out, /^yes {2}12 of 12 prompts are stored$/m)
    assert.match(out, /^yes {2}15 of 15 raw strings .* nor published$/m)
    assert.doesNotMatch(out, /^NO/m)
    assert.match(out, /^All of it is true; everything was stopped\.\n$/m)
    if (anvilMissing === false) {
      const rows = [...out.matchAll(/^.{60} {2}\w+ +0\.\d\d +bafkrei\w+…\w{6} {2}0x\w{8}…\w{6} {2}(\d+)$/gm)]
      assert.equal(rows.length, 12)
      for (const [, confirmations] of rows) assert.ok(Number(confirmations) >= 2)
      assert.match(out, /^yes {2}12 are recorded on the chain, each once$/m)
      await assert.rejects(fetch(addressIn(out, 'chain'), { method: 'POST' }))
      await assert.rejects(fetch(addressIn(out, 'store'), { method: 'POST' }))
    }
    await assert.rejects(fetch(addressIn(out, 'pipeline')))
    assert.deepEqual(readdirSync(folder), [])
  })

  it('stops everything when it is interrupted', async (t) => {
    const folder = await temporaryFolder(t)
    const demo = new Running(DEMO, [], { env: { TMPDIR: folder } })
    t.after(() => demo.child.kill('SIGKILL'))
    await demo.said('1 of 12 through the hook')
    demo.child.kill('SIGINT')
    const { code, out, err } = await demo.ended
    assert.deepEqual([code, err], [130, ''], out)
    await assert.rejects(fetch(addressIn(out, 'pipeline')))
    if (anvilMissing === false) await assert.rejects(fetch(addressIn(out, 'chain'), { method: 'POST' }))
    assert.deepEqual(readdirSync(folder), [])
  })
})

describe('the demonstration of webhooks, embeddings and memories', () => {
  it('prints its figures and that all of it is true, and stops everything', async (t) => {
    const folder = await temporaryFolder(t)
    const demo = new Running(WORKERS, [], { env: { TMPDIR: folder } })
    t.after(() => demo.child.kill('SIGKILL'))
    const { code, out, err } = await demo.ended
    assert.deepEqual([code, err], [0, ''], out)
    assert.match(out, /webhooks delivered +10 of 10, in 11 attempts$/m)
    assert.match(out, /^yes {2}1000 of 1000 texts have one vector each/m)
    assert.match(out, /memories consolidated +50 into 10$/m)
    assert.equal([...out.matchAll(/^yes {2}/gm)].length, 11)
    assert.doesNotMatch(out, /^NO/m)
    await assert.rejects(fetch(addressIn(out, 'receiver'), { method: 'POST' }))
    await assert.rejects(fetch(addressIn(out, 'worker')))
    assert.deepEqual(readdirSync(folder), [])
  })

  it('stops everything when it is interrupted', async (t) => {
    const folder = await temporaryFolder(t)
    const demo = new Running(WORKERS, [], { env: { TMPDIR: folder } })
    t.after(() => demo.child.kill('SIGKILL'))
    await demo.said('250 of 1000 texts')
    demo.child.kill('SIGINT')
    const { code, out, err } = await demo.ended
    assert.deepEqual([code, err], [130, ''], out)
    assert.deepEqual(readdirSync(folder), [])
  })
})
