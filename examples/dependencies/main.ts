/**
 * Jobs that wait for others. One job fetches a page, three count things in it in parallel, and a report collects the results.
 * The whole flow is stored in one transaction. One of the counts always fails; the report runs anyway.
 *
 *     node examples/dependencies/main.ts
 */
import { defineJob, NonRetryable, open } from 'millrace'
import { z } from 'zod'

const fetchPage = defineJob({
  type: 'fetch-page',
  payload: z.object({ url: z.string() }),
  run: ({ payload }) => `the text of ${payload.url}`,
})

const count = defineJob({
  type: 'count',
  payload: z.object({ what: z.enum(['letters', 'words', 'pictures']) }),
  run: ({ payload, after: [page] }) => {
    // The result of another handler is JSON: validate it like any input.
    const text = z.string().parse(page?.result)
    if (payload.what === 'pictures') throw new NonRetryable('there are no pictures in a text')
    return { [payload.what]: payload.what === 'words' ? text.split(' ').length : text.length }
  },
})

const report = defineJob({
  type: 'report',
  run: ({ after }) =>
    after.map(({ state, result, error }) =>
      state === 'completed' ? JSON.stringify(result) : `${state}: ${error?.message}`,
    ),
})

const mill = await open('sqlite:./dependencies.db')

const flow = await mill.enqueueFlow({
  page: { job: fetchPage, payload: { url: 'http://127.0.0.1/' } },
  letters: { job: count, payload: { what: 'letters' }, after: 'page' },
  words: { job: count, payload: { what: 'words' }, after: 'page' },
  pictures: { job: count, payload: { what: 'pictures' }, after: 'page' },
  report: { job: report, after: ['letters', 'words', 'pictures'], ifDead: 'run' },
})

await mill.work([fetchPage, count, report])
for (const line of await mill.result(flow.report)) console.log(line)
await mill.close()
