/** Stubs of the ports and a worker on them, for the tests of this folder. */
import assert from 'node:assert/strict'
import type { AlertMessage } from '../../src/observe/index.ts'
import { drain, openForTest, type TestMill } from '../../src/testing/index.ts'
import { outletsOf } from '../framework/rig.ts'
import type { HttpClient, HttpRequest, HttpResponse, Webhook, WebhookRepositoryPort } from './index.ts'
import { WebhookDispatchWorker } from './index.ts'

export const URL_OF_ALL = 'https://receiver.example/hooks'

interface Call {
  readonly name: string
  readonly values: readonly unknown[]
}

/** The five methods of the port, kept in memory. */
export function stubRepo(webhook: Webhook | null = { url: URL_OF_ALL, isEnabled: true, maxFailures: 3 }) {
  const calls: Call[] = []
  const state = { webhook, failures: 0, fails: false }
  const call = async (name: string, ...values: unknown[]): Promise<void> => {
    calls.push({ name, values })
    if (state.fails) throw new Error('the table is gone')
  }
  const repo: WebhookRepositoryPort = {
    findById: async () => state.webhook,
    recordDelivery: (delivery) => call('recordDelivery', delivery),
    updateStats: (id, stats) => call('updateStats', id, stats),
    countRecentFailures: async (id, windowMs) => {
      calls.push({ name: 'countRecentFailures', values: [id, windowMs] })
      return state.failures
    },
    disable: (id, reason) => call('disable', id, reason),
  }
  const named = (name: string): readonly unknown[][] =>
    calls.filter((one) => one.name === name).map(({ values }) => [...values])
  return { repo, calls, state, named }
}

type Answer = HttpResponse | Error | ((request: HttpRequest) => HttpResponse)

/** Answers in this order, and the last one for ever. */
export function stubHttp(...answers: readonly Answer[]) {
  const sent: { readonly url: string; readonly request: HttpRequest }[] = []
  const http: HttpClient = {
    async post(url, request) {
      const answer = answers[Math.min(sent.length, answers.length - 1)] ?? { status: 200 }
      sent.push({ url, request })
      if (answer instanceof Error) throw answer
      return typeof answer === 'function' ? answer(request) : answer
    },
  }
  return { http, sent }
}

export const OK: HttpResponse = { status: 200, data: 'thanks' }

export async function scene(
  options: {
    readonly answers?: readonly Answer[]
    readonly webhook?: Webhook | null
    readonly dispatch?: ConstructorParameters<typeof WebhookDispatchWorker>[2]
  } = {},
) {
  const alerts: AlertMessage[] = []
  const test: TestMill = await openForTest({ alerter: { send: (alert) => void alerts.push(alert) } })
  const stub = stubRepo(options.webhook)
  const { http, sent } = stubHttp(...(options.answers ?? [OK]))
  const outlets = outletsOf(test)
  const worker = new WebhookDispatchWorker(http, stub.repo, { ...outlets.outlets, ...options.dispatch })
  const job = worker.definition
  /** One job, until nothing of it is due any more, over all of its backoffs. */
  const run = async (data: Parameters<typeof test.mill.enqueue>[1] = {}) => {
    const payload = { webhookId: 'wh_1', payload: { n: 1 }, ...Object(data) }
    const { id } = await test.mill.enqueue(job, payload)
    for (let round = 0; round < 12; round += 1) {
      await drain(test.mill, [job])
      const view = await test.mill.job(id)
      if (view === null || ['completed', 'dead_letter'].includes(view.state)) break
      await test.clock.advance('1h')
    }
    const view = await test.mill.job(id)
    assert.ok(view)
    return view
  }
  return { ...test, ...stub, ...outlets, alerts, sent, worker, job, run, close: test.close }
}
