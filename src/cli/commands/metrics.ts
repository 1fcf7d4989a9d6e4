/** `/metrics` and `/health`, for a process that serves nothing else. */
import type { RequestListener } from 'node:http'
import { type Command, Option } from 'commander'
import { OptionError } from '../../errors.ts'
import { HOST_DEFAULT } from '../../http/address.ts'
import { type Listening, listenOn } from '../../http/server.ts'
import type { Log } from '../../job/definition.ts'
import { errorText } from '../../job/error-record.ts'
import { omitUndefined } from '../../job/known-options.ts'
import type { HealthAnswer } from '../../observe/health.ts'
import type { Metrics } from '../../observe/metrics/instrument.ts'
import { metricsPrefixOption, portNumber } from '../arguments.ts'
import type { Cli } from '../cli.ts'
import { type Serve, serveNothing } from './serve.ts'

export interface MetricsFlags {
  readonly metricsPort?: number
  readonly metricsHost?: string
  readonly metricsPrefix?: string
}

export function addMetricsOptions(command: Command): Command {
  return command.addOption(metricsPortOption()).addOption(metricsHostOption()).addOption(metricsPrefixOption())
}

export function metricsPortOption(): Option {
  const served = 'serve /metrics and /health, /health/live and /health/ready on this port'
  return new Option('--metrics-port <n>', `${served}; 0 takes any free one (default: off)`).argParser(portNumber)
}

export function metricsHostOption(): Option {
  const address = 'the address for --metrics-port, such as 0.0.0.0 in a container; callers need no token'
  return new Option('--metrics-host <address>', `${address} (default: ${HOST_DEFAULT})`)
}

export function refuseHostAlone({ metricsPort, metricsHost }: Pick<MetricsFlags, 'metricsPort' | 'metricsHost'>): void {
  if (metricsPort === undefined && metricsHost !== undefined)
    throw new OptionError('--metrics-host says where --metrics-port listens; add it')
}

export function serveMetrics({ clock, extensions }: Cli, flags: MetricsFlags): Serve {
  refuseHostAlone(flags)
  const { metricsPort, metricsHost, metricsPrefix } = flags
  if (metricsPort === undefined) {
    if (metricsPrefix !== undefined) throw new OptionError('--metrics-prefix names metrics; add --metrics-port')
    return serveNothing
  }
  return async (first, { log, others = [], worked, watched = null, instruments = [], ...served }) => {
    const [
      { attachMetrics, checkHealth },
      { workersOf },
      { joinMills },
      { ALIVE, healthAnswer, pingEngine, readinessOf },
      { serving },
    ] = await Promise.all([
      import('../../observe/index.ts'),
      import('../../observe/health.ts'),
      import('../../observe/joined-mills.ts'),
      import('../../observe/readiness.ts'),
      extensions.serving(),
    ])
    const mill = joinMills([first, ...others], worked)
    const observing = await serving.observe({ mill, broker: null, watched, clock, log })
    const metrics = await attachMetrics(mill, {
      ...{ clock, instruments: [...observing.instruments, ...instruments] },
      ...omitUndefined({ prefix: metricsPrefix ?? served.metricsPrefix }),
    })
    const probes: Probes = {
      '/health': async () => healthAnswer(await checkHealth(mill, { ...workersOf(mill.engine, clock), clock })),
      '/health/live': async () => ALIVE,
      '/health/ready': async () => readinessOf(await pingEngine(mill.engine, clock)),
    }
    const listening = await serveProbes({ metrics, probes }, { port: metricsPort, host: metricsHost }, log)
    return {
      async close() {
        metrics.detach()
        await listening.close()
      },
    }
  }
}

/** Health, by path. */
type Probes = Readonly<Record<string, () => Promise<HealthAnswer>>>

/** `/metrics` and the probes. */
export async function serveProbes(
  { metrics, probes }: { readonly metrics: Pick<Metrics, 'contentType' | 'collectMetrics'>; readonly probes: Probes },
  { port, host = HOST_DEFAULT }: { readonly port: number; readonly host?: string | undefined },
  log: Log,
): Promise<Listening> {
  const health = Object.entries(probes).map(([path, probe]) => [path, async () => json(await probe())] as const)
  const scrape = async () => ({ status: 200, type: metrics.contentType, text: await metrics.collectMetrics() })
  const listening = await listenOn(listenerOf({ ...Object.fromEntries(health), '/metrics': scrape }), { port, host })
  log.info('Metrics are served', { url: `${listening.url}/metrics` })
  return listening
}

interface Answer {
  readonly status: number
  readonly type: string
  readonly text: string
}

function json({ httpStatus, body }: HealthAnswer): Answer {
  return { status: httpStatus, type: 'application/json', text: JSON.stringify(body) }
}

/** By path. */
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
