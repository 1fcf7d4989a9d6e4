/** The parts that every judgement of the doctor is made of. */
import type { Finding } from '../engine/engine.ts'
import { isMillraceError, messageOf } from '../errors.ts'

export function ok(subject: string, detail: string): Finding {
  return { severity: 'ok', subject, detail, advice: null }
}

export function warning(subject: string, detail: string, advice: string): Finding {
  return { severity: 'warning', subject, detail, advice }
}

export function failure(subject: string, detail: string, advice: string): Finding {
  return { severity: 'error', subject, detail, advice }
}

type Found = Finding | readonly Finding[]

/** Reads facts of one subject from the store and judges them. */
export type Check = readonly [subject: string, run: () => Found | Promise<Found>]

/** Runs the checks one after the other. A check that fails is a finding too, so one fault does not hide the others. */
export async function runChecks(checks: readonly Check[]): Promise<readonly Finding[]> {
  const findings: Finding[] = []
  for (const [subject, run] of checks) {
    try {
      const found = await run()
      findings.push(...('severity' in found ? [found] : found))
    } catch (error) {
      if (isMillraceError(error, 'ERR_CLOSED')) throw error
      findings.push(
        failure(
          subject,
          `could not be checked: ${messageOf(error)}`,
          'Fix the other findings first, then run it again.',
        ),
      )
    }
  }
  return findings
}

const UNITS = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'] as const

export function formatBytes(bytes: number): string {
  let [amount, unit] = [bytes, 0]
  while (amount >= 1024 && unit < UNITS.length - 1) [amount, unit] = [amount / 1024, unit + 1]
  return `${unit === 0 ? amount : amount.toFixed(1)} ${UNITS[unit]}`
}

/** In one unit, rounded down: an operator needs no more. */
export function formatAge(ms: number): string {
  const seconds = Math.floor(ms / 1_000)
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 120) return `${minutes} min`
  const hours = Math.floor(minutes / 60)
  return hours < 48 ? `${hours} h` : `${Math.floor(hours / 24)} d`
}

export function plural(count: number, noun: string, many = `${noun}s`): string {
  return `${count} ${count === 1 ? noun : many}`
}
