import type { CommandCall } from '../../../src/cli/extensions.ts'
import { omitUndefined } from '../../../src/job/known-options.ts'
import { openWebhooks, WEBHOOKS_ENGINE, type Webhooks } from '../webhooks.ts'

/** Only `add` creates a file: a mistyped path of another command gets an error. */
export async function using<Answer>(
  { engine, clock, options }: CommandCall,
  use: (webhooks: Webhooks) => Promise<Answer>,
  { mustExist = true }: { readonly mustExist?: boolean } = {},
): Promise<Answer> {
  const allow = textsOf(options.allow)
  const webhooks = await openWebhooks({
    engine: engine ?? WEBHOOKS_ENGINE,
    clock,
    mustExist,
    ...omitUndefined({ allow }),
  })
  try {
    return await use(webhooks)
  } finally {
    await webhooks.close()
  }
}

/** The values of an option that takes several. */
export function textsOf(value: unknown): readonly string[] | undefined {
  return Array.isArray(value) ? value.map(String) : undefined
}
