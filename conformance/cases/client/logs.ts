import assert from 'node:assert/strict'
import type { CaseFile } from '../../case.ts'
import { numberedJob, SOON_MS } from '../../crew.ts'
import { inspection, need } from '../../needs.ts'
import { logs } from '../../operations.ts'

export const said: CaseFile = {
  level: 'client',
  concept: 'What handlers say',
  cases: [
    {
      name: 'what a handler says is kept with its job by attempt, redacted, and written without being waited for',
      guarantees: ['I12'],
      ...need(logs, inspection),
      async run(stage) {
        const mill = await stage.mill()
        const job = numberedJob(stage, {
          backoff: { kind: 'fixed', delay: 0 },
          run({ log, job: { attempt } }) {
            log.debug('not kept')
            log.info('mail to ann@example.com', { attempt, password: 'zanzibar' })
            log.error('again')
            if (attempt === 1) throw new Error('no')
          },
        })
        const worker = await mill.work([job])
        const { id } = await mill.enqueue(job, { n: 1 })
        await stage.within(SOON_MS, mill.result(id), 'the result')
        const isWhole = async (): Promise<boolean> => (await mill.logs(id)).lines.length === 4
        await stage.until(SOON_MS, isWhole, 'the lines of both attempts')
        const { lines, dropped } = await mill.logs(id)
        assert.equal(dropped, 0)
        assert.deepEqual(
          lines.map(({ seq, level, attempt, message, fields }) => [seq, level, attempt, message, fields]),
          [1, 2].flatMap((n) => [
            [2 * n - 1, 'info', n, 'mail to [email]', { attempt: n, password: '[redacted]' }],
            [2 * n, 'error', n, 'again', null],
          ]),
        )
        assert.ok(lines.every((each) => each.worker === worker.id))
      },
    },
    {
      name: 'a worker that stops has written what its handlers said, and one that keeps no logs has not',
      guarantees: ['I8', 'I12'],
      ...need(logs, inspection),
      async run(stage) {
        const mill = await stage.mill()
        const job = numberedJob(stage, { run: ({ log }) => log.info('done') })
        for (const [keepLogs, expected] of [
          [{ lines: 1 }, ['done']],
          [false, []],
        ] as const) {
          const worker = await mill.work([job], { keepLogs })
          const { id } = await mill.enqueue(job, { n: 1 })
          await stage.within(SOON_MS, mill.result(id), 'the result')
          await stage.within(SOON_MS, worker.stop(), 'the stop')
          const { lines } = await mill.logs(id)
          assert.deepEqual(
            lines.map(({ message }) => message),
            expected,
          )
        }
      },
    },
  ],
}
