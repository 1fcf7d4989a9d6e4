/** Real processes whose wall clock is set while they run: libfaketime steps it, and leaves the monotonic clock alone. */
import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, fork } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { open } from '../../src/client/mill.ts'
import { defineJob } from '../../src/job/definition.ts'
import { tempFiles } from '../fixtures/temp-files.ts'
import { findProgram } from '../servers/apt.ts'

const faketime = findProgram('faketime', 'faketime')
const skip = faketime === null ? `needs libfaketime; install Debian's package 'faketime'` : false
const files = tempFiles()
const children: ChildProcess[] = []
after(() => {
  for (const child of children) child.kill('SIGKILL')
})

interface Told {
  readonly event: string
  readonly type: string
}

class Machine {
  readonly url = `sqlite:${files.next()}`
  readonly #clock = join(files.folder, `${children.length}.clock`)

  constructor() {
    this.set('+0')
  }

  /** Relative to the real time, for all processes of this machine at once. */
  set(offset: string): void {
    writeFileSync(this.#clock, `${offset}\n`)
  }

  async start(types: string): Promise<Process> {
    assert.ok(faketime !== null)
    const preload = /^LD_PRELOAD=(.*)$/m.exec(execFileSync(faketime, ['-m', '-f', '+0', 'env'], { encoding: 'utf8' }))
    const env = {
      ...process.env,
      LD_PRELOAD: preload?.[1] ?? '',
      FAKETIME_TIMESTAMP_FILE: this.#clock,
      FAKETIME_NO_CACHE: '1',
      DONT_FAKE_MONOTONIC: '1',
    }
    const execArgv = ['--disable-warning=ExperimentalWarning']
    const file = new URL('./clock-worker.ts', import.meta.url)
    const child = fork(file, [this.url, types], { env, execArgv, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    children.push(child)
    const started = new Process(child)
    await started.until('ready')
    return started
  }
}

class Process {
  readonly child: ChildProcess
  readonly told: string[] = []

  constructor(child: ChildProcess) {
    this.child = child
    child.on('message', ({ event, type }: Told) => this.told.push(`${event} ${type}`.trim()))
  }

  count(what: string): number {
    return this.told.filter((one) => one === what).length
  }

  /** Until it was told so often in all. */
  async until(what: string, total = 1): Promise<void> {
    while (this.count(what) < total) await once(this.child, 'message')
  }

  /** Until it was told so often from now on. */
  more(what: string, count: number): Promise<void> {
    return this.until(what, this.count(what) + count)
  }
}

test('a clock set forward by 90 s takes no job from a worker that renews', { skip, timeout: 120_000 }, async () => {
  const machine = new Machine()
  const [holder, rival] = [await machine.start('slow'), await machine.start('limited')]
  const mill = await open(machine.url)
  const { id } = await mill.enqueue(defineJob({ type: 'slow', attempts: 2 }), {})
  await holder.until('started slow')
  machine.set('+90s')
  await Promise.all([holder.until('stepped'), rival.until('stepped')])
  // The leading keeper has looked for expired leases several times by now.
  await Promise.race([holder.more('pass', 5), rival.more('pass', 5)])
  // A process that starts after the step has never seen the clock as it was.
  const late = await machine.start('limited')
  await Promise.race([holder.more('pass', 5), rival.more('pass', 5), late.more('pass', 5)])
  holder.child.send('finish')
  await holder.until('complete slow')
  for (const one of [holder, rival, late]) {
    assert.equal(one.count('lost slow') + one.count('reaped slow'), 0, one.told.join(', '))
  }
  assert.equal(holder.count('started slow'), 1)
  assert.equal((await mill.job(id))?.attempt, 1)
  await mill.close()
})

test('a clock set back by an hour holds up neither limits nor recovery nor schedules', {
  skip,
  timeout: 120_000,
}, async () => {
  const machine = new Machine()
  const [holder, rival] = [await machine.start('slow'), await machine.start('limited,ticking')]
  const mill = await open(machine.url)
  await mill.enqueue(defineJob({ type: 'slow', attempts: 2 }), {})
  await mill.enqueueMany(defineJob({ type: 'limited' }), Array(40).fill({}))
  await Promise.all([holder.until('started slow'), rival.until('started limited', 2)])
  holder.child.kill('SIGKILL')
  machine.set('-3600s')
  await rival.until('stepped')
  await Promise.all([rival.more('started limited', 4), rival.more('started ticking', 2), rival.until('reaped slow')])
  await mill.close()
})
