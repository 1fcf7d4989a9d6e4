/** What the crew does with processes that do nothing but end. */
import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { recordTo } from '../../proof/history/recorder.ts'
import { RoundCrew } from './crew.ts'
import type { Child, Spare } from './spares.ts'

/** Ends as it is told to: with 0 when it is asked to stop, or killed. */
class FakeChild extends EventEmitter implements Child {
  readonly connected = true
  readonly stderr = null
  exitCode: number | null = null
  signalCode: NodeJS.Signals | null = null
  isPoisoned = false

  send(): boolean {
    setImmediate(() => this.emit('message', { told: 'ready' }))
    return true
  }

  kill(signal: NodeJS.Signals): boolean {
    if (signal === 'SIGTERM' && !this.isPoisoned) this.exitCode = 0
    else this.signalCode = 'SIGKILL'
    setImmediate(() => this.emit('exit', this.exitCode, this.signalCode))
    return true
  }
}

const folder = mkdtempSync(join(tmpdir(), 'millrace-crew-'))
test.after(() => rmSync(folder, { recursive: true }))

async function startCrew(): Promise<{ readonly crew: RoundCrew; readonly children: readonly FakeChild[] }> {
  const children: FakeChild[] = []
  const take = (): Spare => {
    const child = new FakeChild()
    children.push(child)
    return { child, clock: undefined, isLoaded: true }
  }
  const program = { seed: 1, jobs: 1, clients: 0, spanMs: 1 }
  const part = { engine: 'sqlite', url: 'sqlite:nowhere.db', history: folder, program } as const
  const recorder = recordTo(folder, 'referee')
  const crew = new RoundCrew({ spares: { take }, recorder, part, workers: 2, keepers: 1 })
  await crew.start()
  return { crew, children }
}

for (const isPoisoned of [false, true])
  test(`who acts while all are stopped is told whether they ended by themselves: ${!isPoisoned}`, async () => {
    const { crew, children } = await startCrew()
    for (const child of children.slice(1, 2)) child.isPoisoned = isPoisoned
    const told: boolean[] = []
    await crew.whileStopped('SIGTERM', { act: async (isOrderly) => void told.push(isOrderly) })
    assert.deepEqual(told, [!isPoisoned])
    await crew.kill()
  })

test('no other program uses the store while all are stopped', async () => {
  const { crew } = await startCrew()
  const events: string[] = []
  const first = Promise.withResolvers<void>()
  const running = crew.runOutside(async () => {
    await first.promise
    events.push('first ended')
  })
  let second = Promise.resolve()
  const stopped = crew.whileStopped('SIGTERM', {
    act: async () => {
      events.push('acts')
      second = crew.runOutside(async () => void events.push('second'))
      await new Promise((resolve) => setImmediate(resolve))
      events.push('acted')
    },
  })
  setTimeout(() => first.resolve(), 20)
  await Promise.all([running, stopped])
  await second
  assert.deepEqual(events, ['first ended', 'acts', 'acted', 'second'])
  await crew.kill()
})
