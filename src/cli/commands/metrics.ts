/** `/metrics` and `/health`, for a worker, which serves nothing else. */
import type { RequestListener } from 'node:http'
import type { Command } from 'commander'
import { OptionError } from '../../errors.ts'
import { HOST_DEFAULT, listenOn } from '../../http/server.ts'
import { errorText } from '../../job/error-record.ts'
import { omitUndefined } from '../../job/known-options.ts'
import { metricsPrefixOption, portNumber } from '../arguments.ts'
import type { Cli } from '../cli.ts'
import { type Serve, serveNothing } from './serve.ts'

export interface MetricsFlags {
  readonly metricsPort?: number
  readonly metricsPrefix?: string
}

export function addMetricsOptions(command: Command): Command {
  return command
    .option(
      '--metrics-port <n>',
      `serve /metrics and /health on this port of ${HOST_DEFAULT}; 0 takes any free one (default: off)`,
      portNumber,
    )
    .addOption(metricsPrefixOption())
}

export function serveMetrics({ clock, extensions }: Cli, { metricsPort, metricsPrefix }: MetricsFlags): Serve {
  if (metricsPort === undefined) {
    if (metricsPrefix !== undefined) throw new OptionError('--metrics-prefix names metrics; add --metrics-port')
    return serveNothing
  }
  return async (first, { log, others = [], worked, watched = null, instruments = [] }) => {
    const [{ attachMetrics, checkHealth }, { workersOf }, { joinMills }, { serving }] = await Promise.all([
      import('../../observe/index.ts'),
      import('../../observe/health.ts'),
      import('../../observe/joined-mills.ts'),
      extensions.serving(),
    ])
    const mill = joinMills([first, ...others], worked)
    const observing = await serving.observe({ mill, broker: null, watched, clock, log })
    const metrics = await attachMetrics(mill, {
      ...{ clock, instruments: [...observing.instruments, ...instruments] },
      ...omitUndefined({ prefix: metricsPrefix }),
    })
    const answers: Answers = {
      '/metrics': async () => ({ status: 200, type: metrics.contentType, text: await metrics.collectMetrics() }),
      '/health': async () => {
        const health = await checkHealth(mill, { ...workersOf(mill.engine, clock), clock })
        const status = health.status === 'unhealthy' ? 503 : 200
        return { status, type: 'application/json', text: JSON.stringify(health) }
      },
    }
    const listening = await listenOn(listenerOf(answers), { port: metricsPort, host: HOST_DEFAULT })
    log.info('Metrics are served', { url: `${listening.url}/metrics` })
    return {
      async close() {
        metrics.detach()
        await listening.close()
      },
    }
  }
}

interface Answer {
  readonly status: number
  readonly type: string
  readonly text: string
}

type Answers = Readonly<Record<string, () => Promise<Answer>>>

function listenerOf(answers: Answers): RequestListener {
  return ({ url = '' }, response) => {
    const [path = ''] = url.split('?')
    const answer = Object.hasOwn(answers, path) ? answers[path] : undefined
    if (answer === undefined) {
      response.writeHead(404).end()
      return
    }
    answer().then(
      ({ status, type, text }) =>
        response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' }).end(text),
      (error: unknown) => response.writeHead(500).end(errorText(error)),
    )
  }
}
