/**
 * Runs one Kafka broker for the process that started this one, and ends it and removes its data when that process is
 * gone, however it went: the standard input then closes. The arguments are settings, such as
 * `message.max.bytes=1000`, and flags of the JVM, such as `-Xmx1g`.
 *
 * Lines on standard input: `stop` ends it in an orderly way and `kill` without a goodbye; `start` starts it again on the
 * same ports with what it had written, `wipe` removes that first; `freeze` and `thaw` stop and continue the process.
 * Each is answered by a line that begins with `ready`, or with `failed` and the reason.
 */
import type { ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type BrokerPlace, emptyStorage, endBroker, startBroker, startOnFreePorts } from './kafka-broker.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-kafka-'))
process.on('SIGINT', () => {})
process.on('SIGTERM', () => {})

async function obey(line: string, place: BrokerPlace, broker: ChildProcess): Promise<ChildProcess> {
  switch (line) {
    case 'stop':
      await endBroker(broker, 'SIGTERM')
      return broker
    case 'kill':
      await endBroker(broker, 'SIGKILL')
      return broker
    case 'wipe':
      emptyStorage(place)
      return broker
    case 'start':
      return startBroker(place)
    case 'freeze':
      broker.kill('SIGSTOP')
      return broker
    case 'thaw':
      broker.kill('SIGCONT')
      return broker
    default:
      throw new Error(`no such command: ${line}`)
  }
}

function failed(error: unknown): string {
  return `failed ${String(error).replaceAll('\n', ' ')}\n`
}

async function keep(): Promise<void> {
  const given = process.argv.slice(2)
  const started = await startOnFreePorts(folder, {
    settings: given.filter((argument) => !argument.startsWith('-')),
    jvm: given.filter((argument) => argument.startsWith('-')),
  })
  let { broker } = started
  const ready = `ready ${[started.place.port, ...started.place.morePorts].join(' ')}\n`
  process.stdout.write(ready)
  for await (const line of createInterface({ input: process.stdin })) {
    try {
      broker = await obey(line, started.place, broker)
      process.stdout.write(ready)
    } catch (error) {
      process.stdout.write(failed(error))
    }
  }
  await endBroker(broker, 'SIGKILL')
}

try {
  await keep()
} catch (error) {
  process.stdout.write(failed(error))
} finally {
  rmSync(folder, { recursive: true, force: true })
}
