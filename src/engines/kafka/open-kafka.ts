import type { TlsFiles } from '../../engine/secure-url.ts'
import { OptionError } from '../../errors.ts'
import { type OptionNames, refuseUnknown } from '../../job/known-options.ts'
import { type Clock, systemClock } from '../../time/clock.ts'
import { KafkaEngine } from './engine.ts'
import { type From, parseUrl } from './options.ts'
import { isSentInClear, type KafkaSasl } from './security.ts'

export interface OpenKafkaOptions {
  /** Default: what the URL says. */
  readonly tls?: TlsFiles
  /** Default: what the URL says. */
  readonly sasl?: KafkaSasl
  /** Where a group that has committed nothing starts. Default: what the URL says, or earliest. */
  readonly from?: From
  readonly clock?: Clock
}

const NAMES: OptionNames<OpenKafkaOptions> = { tls: true, sasl: true, from: true, clock: true }

/**
 * An engine with what a URL cannot say, such as a function that fetches tokens. `open` takes it in place of a URL.
 *
 * @example
 * const sasl = { mechanism: 'oauthbearer', token: () => fetchToken() } as const
 * const mill = await open(await openKafka('kafkas://broker:9093?group=payouts', { sasl }))
 */
export async function openKafka(url: string, options: OpenKafkaOptions = {}): Promise<KafkaEngine> {
  refuseUnknown(options, NAMES, 'openKafka')
  const parsed = parseUrl(url)
  const { clock = systemClock, from = parsed.from, sasl = parsed.security.sasl, tls = parsed.security.tls } = options
  if (options.sasl !== undefined && parsed.security.sasl !== null)
    throw new OptionError(`the URL and 'sasl' both say how to log in; give one`)
  if (options.sasl !== undefined && tls === null && isSentInClear(options.sasl))
    throw new OptionError(`'sasl' would send its secret in clear text; write kafkas: or give 'tls'`)
  return KafkaEngine.connect({ ...parsed, from, security: { tls, sasl } }, { clock, migrate: true })
}
