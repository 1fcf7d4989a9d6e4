import { OptionError } from '../../../src/errors.ts'
import { refuseUnknown } from '../../../src/job/known-options.ts'
import type { Rule, Sanitize } from './rule.ts'
import { BUILT_IN_RULES, isFound, SANITIZATION_VERSION, sanitizerOf } from './sanitizer.ts'
import { compileUserRule, type UserRule, userRule } from './user-rules.ts'

export { BUILT_IN_RULES, SANITIZATION_VERSION }

export interface SanitizerOptions {
  /** Rules beside the built-in ones, such as those of `loadUserRules`. They take precedence. */
  readonly rules?: readonly UserRule[]
}

/**
 * Replaces personal data and secrets in a text. Sanitised text again gives the same text. Takes time linear in the length.
 *
 * @example
 *   const sanitize = createSanitizer({ rules: [{ id: 'customers', category: 'customer', replacement: '[CUSTOMER]', terms: ['Acme Ltd'] }] })
 *   sanitize('Acme Ltd wrote from ann@example.com').text // '[CUSTOMER] wrote from [EMAIL]'
 */
export function createSanitizer(options: SanitizerOptions = {}): Sanitize {
  refuseUnknown(options, { rules: true }, 'createSanitizer')
  const own = (options.rules ?? []).map(userRule)
  const rules = [...own.map(compileUserRule), ...BUILT_IN_RULES]
  refuseFoundReplacements(rules, own)
  return sanitizerOf(rules, versionOf(own))
}

/** Terms may be words of a replacement: a place inside one is not looked at. */
function refuseFoundReplacements(rules: readonly Rule[], own: readonly UserRule[]): void {
  if (own.length === 0) return
  const without = rules.filter((_, index) => !('terms' in (own[index] ?? {})))
  for (const { id, replacement } of own) {
    if (!isFound(without, ` ${replacement} `)) continue
    throw new OptionError(
      `the replacement of '${id}' is itself found by a rule; choose one such as "[${id.toUpperCase()}]"`,
    )
  }
}

function versionOf(own: readonly UserRule[]): string {
  if (own.length === 0) return SANITIZATION_VERSION
  // Loaded here: it takes longer than all of this folder, and most users add no rules.
  const { hash } = process.getBuiltinModule('node:crypto')
  return `${SANITIZATION_VERSION}+${hash('sha256', JSON.stringify(own)).slice(0, 8)}`
}
