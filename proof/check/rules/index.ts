import type { Rule } from '../check.ts'

export const rules: readonly Rule[] = []
