/** The runbook of the package as a page that alerts can link to: an anchor for each entry. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { packageRoot } from '../engine/package-info.ts'
import { RUNBOOK } from '../observe/alerts/runbook.ts'

/** Null where the package's pages are not, such as in a bundle. */
export async function runbookPage(): Promise<Response | null> {
  const root = packageRoot()
  const text = root === null ? null : await readFile(join(root, RUNBOOK), 'utf8').catch(() => null)
  if (text === null) return null
  const html = `<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Millrace: runbook</title></head><body>\n${bodyOf(text)}\n</body></html>\n`
  return new Response(html, { headers: { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-cache' } })
}

/** Only what the runbook uses: headings, code, paragraphs and items. */
function bodyOf(markdown: string): string {
  return markdown
    .split(/\n{2,}/)
    .map((block) => blockOf(block.trim()))
    .join('\n')
}

function blockOf(block: string): string {
  const heading = /^(#{1,4}) (.*)$/.exec(block)
  if (heading !== null) {
    const [, { length: level } = '', title = ''] = heading
    return `<h${level} id="${escaped(title.toLowerCase())}">${escaped(title)}</h${level}>`
  }
  const code = /^```\w*\n([\s\S]*?)\n?```$/.exec(block)
  if (code !== null) return `<pre>${escaped(code[1] ?? '')}</pre>`
  if (/^- /.test(block)) {
    const items = block.split(/\n(?=- )/).map((item) => `<li>${inline(item.slice(2))}</li>`)
    return `<ul>\n${items.join('\n')}\n</ul>`
  }
  return `<p>${inline(block)}</p>`
}

/** Other pages are not served here, so a link to one is only its text; a link to another entry stays one. */
function inline(text: string): string {
  return escaped(text)
    .replaceAll(/`([^`]+)`/g, '<code>$1</code>')
    .replaceAll(/\*\*([^*]+)\*\*/g, '<b>$1</b>')
    .replaceAll(/\[([^\]]+)\]\((#[\w-]+)\)/g, '<a href="$2">$1</a>')
    .replaceAll(/\[([^\]]+)\]\([^)]*\)/g, '$1')
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
