import { isMillraceError, messageOf } from '../errors.ts'
import type { Finding } from './diagnosis.ts'

export function ok(subject: string, detail: string): Finding {
  return { severity: 'ok', subject, detail, advice: null }
}

export function warning(subject: string, detail: string, advice: string): Finding {
  return { severity: 'warning', subject, detail, advice }
}

export function failure(subject: string, detail: string, advice: string): Finding {
  return { severity: 'error', subject, detail, advice }
}

/** A look that fails is a finding of its own, so that one fault does not hide the others. */
export async function looked(
  subject: string,
  look: () => Promise<Finding | readonly Finding[]>,
): Promise<readonly Finding[]> {
  try {
    const found = await look()
    return 'severity' in found ? [found] : found
  } catch (error) {
    if (isMillraceError(error, 'ERR_CLOSED')) throw error
    const reason = messageOf(error)
    return [failure(subject, `could not be looked at: ${reason}`, 'Mend the other findings first, then look again.')]
  }
}

const UNITS = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'] as const

export function formatBytes(bytes: number): string {
  let [amount, unit] = [bytes, 0]
  while (amount >= 1024 && unit < UNITS.length - 1) [amount, unit] = [amount / 1024, unit + 1]
  return `${unit === 0 ? amount : amount.toFixed(1)} ${UNITS[unit]}`
}

/** In whole minutes, or seconds below one: an operator needs no more. */
export function formatAge(ms: number): string {
  const seconds = Math.floor(ms / 1_000)
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 120) return `${minutes} min`
  const hours = Math.floor(minutes / 60)
  return hours < 48 ? `${hours} h` : `${Math.floor(hours / 24)} d`
}

export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
