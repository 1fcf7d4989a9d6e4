/** The settings that make a coding assistant call the hook. */

/** The command that assistants run for each prompt. */
export const HOOK_COMMAND = 'npx millrace-hook'

export interface InstalledSettings {
  /** The whole file, as it should be. */
  readonly text: string
  /** False when it already has the hook. */
  readonly changed: boolean
}

/**
 * Adds the hook to the settings of an assistant that calls commands for `UserPromptSubmit`. `current` is the text of its
 * settings file, or null if there is none. Throws an OptionError when the text is not the settings it should be.
 */
export function withHook(current: string | null, command: string = HOOK_COMMAND): InstalledSettings {
  const settings: Record<string, unknown> = current === null || current.trim() === '' ? {} : JSON.parse(current)
  const entry = { hooks: [{ type: 'command', command }] }
  if (JSON.stringify(settings).includes(JSON.stringify(command))) return { text: current ?? '', changed: false }
  const hooks = (settings.hooks ?? {}) as Record<string, unknown>
  const submitted = Array.isArray(hooks.UserPromptSubmit) ? hooks.UserPromptSubmit : []
  const after = { ...settings, hooks: { ...hooks, UserPromptSubmit: [...submitted, entry] } }
  return { text: `${JSON.stringify(after, null, 2)}\n`, changed: true }
}
