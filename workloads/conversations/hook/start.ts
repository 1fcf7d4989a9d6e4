/** The start of the built file. scripts/hook.ts puts the text of the rest (main.ts) and its hash in here. */
import { compileHook, type HookCode } from './code-cache.ts'

declare const HOOK_TEXT: string
declare const HOOK_HASH: string
declare const require: NodeJS.Require

// One thread reads standard input; libuv would start four.
process.env.UV_THREADPOOL_SIZE = '1'

const code = compileHook(HOOK_TEXT, HOOK_HASH)
const run: (require: NodeJS.Require, HOOK_CODE: HookCode) => void = code.script.runInThisContext()
run(require, code)
