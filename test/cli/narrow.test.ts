/** Tables on a terminal of 60 columns. */
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { defineJob, NonRetryable, open } from 'millrace'
import { runCli } from './in-process.ts'
import { temporaryFolder } from './run.ts'

const COLUMNS = 60
const TYPE = 'send-invoice-to-every-customer-of-the-northern-region'
const sendInvoice = defineJob({
  type: TYPE,
  attempts: 1,
  run() {
    throw new NonRetryable('the mail server of the northern region refused the invoice of every single customer')
  },
})

async function filledStore(t: TestContext): Promise<{ readonly url: string; readonly id: string }> {
  const url = `sqlite:${await temporaryFolder(t)}/jobs.db`
  const mill = await open(url, { jobs: [sendInvoice] })
  t.after(() => mill.close())
  const { promise: died, resolve } = Promise.withResolvers<void>()
  mill.events.on('job.settled', () => resolve())
  const worker = await mill.work([sendInvoice], { id: 'host-of-the-northern-region:4711:1', drain: 0 })
  const { id } = await mill.enqueue(sendInvoice, {})
  await died
  await mill.note({
    who: 'ann',
    action: 'pause',
    type: TYPE,
    reason: 'the mail server of the region is down',
    jobId: id,
  })
  await mill.schedules.upsert('every-night-in-the-northern-region', {
    ...{ type: sendInvoice, cron: '0 3 * * MON-FRI', tz: 'America/Argentina/Buenos_Aires' },
  })
  t.after(() => worker.stop())
  return { url, id }
}

describe('on a terminal of 60 columns', () => {
  it('every table fits, with whole ids, whatever names are in it', async (t) => {
    const { url, id } = await filledStore(t)
    const tables: readonly (readonly string[])[] = [
      ['jobs'],
      ['dead'],
      ['dead', '--groups'],
      ['audit'],
      ['stats'],
      ['schedules'],
      ['workers'],
    ]
    for (const args of tables) {
      const { code, out, err } = await runCli([...args, '--engine', url], COLUMNS)
      assert.deepEqual([code, err], [0, ''], args.join(' '))
      const lines = out.split('\n')
      assert.deepEqual(
        lines.filter((line) => line.length > COLUMNS),
        [],
        args.join(' '),
      )
      if (['jobs', 'audit'].includes(args[0] ?? '') || args.join() === 'dead') assert.ok(out.includes(id), out)
      t.diagnostic(`${args.join(' ')}\n${out}`)
    }
  })

  it('a pipe gets every cell whole, on one line', async (t) => {
    const { url, id } = await filledStore(t)
    const { out } = await runCli(['dead', '--engine', url])
    const [, row = ''] = out.split('\n')
    assert.ok(row.startsWith(`${id}  ${TYPE}  `), row)
    assert.ok(row.endsWith('refused the invoice of every single customer'), row)
  })
})
