/** Finds sentences that state something worth keeping, by the words that people state it with. It understands nothing. */
import type { ModelLearning, ModelMessage } from './model.ts'

interface Cue {
  readonly category: string
  readonly confidence: number
  readonly pattern: RegExp
}

const cue = (category: string, confidence: number, pattern: RegExp): Cue => ({ category, confidence, pattern })

const CUES: readonly Cue[] = [
  cue('fix', 0.9, /\bthe (?:real |actual |proper |right |final )?(?:fix|solution) (?:is|was|turned out|here)\b/i),
  cue('fix', 0.85, /\b(?:what|which) (?:finally )?(?:worked|helped|fixed|solved)\b/i),
  cue('fix', 0.8, /\b(?:fixed|solved|resolved) (?:it |this |that |the \S+ |the \S+ \S+ )?(?:by|with|after)\b/i),
  cue('fix', 0.8, /\bwork-?around (?:is|was|here)\b/i),
  cue('fix', 0.75, /\b(?:that|this|which|it) (?:fixed|solved|resolved) (?:it|this|the)\b/i),
  cue('fix', 0.7, /\bworks (?:now|again) (?:after|since|because|with)\b/i),
  cue('cause', 0.9, /\broot cause\b/i),
  cue('cause', 0.8, /\b(?:turns|turned) out\b/i),
  cue(
    'cause',
    0.8,
    /\bthe (?:real |actual )?(?:problem|issue|bug|culprit|reason|cause) (?:is|was)\b(?! (?:still|not))/i,
  ),
  cue('cause', 0.75, /\b(?:is|was|were|are) caused by\b/i),
  cue(
    'cause',
    0.75,
    /\b(?:fails?|failed|breaks?|broke|happens|happened|crashe[sd]|hangs|hung) (?:\S+ ){0,3}(?:because|due to|whenever)\b/i,
  ),
  cue('decision', 0.85, /\bwe(?:'ve| have)? (?:decided|chose|chosen|agreed|settled|opted|standardi[sz]ed)\b/i),
  cue('decision', 0.85, /^(?:\W{0,4})decision:/i),
  cue(
    'decision',
    0.8,
    /\bwe (?:use|run|keep|store|pin|avoid) .{2,120}\b(?:because|so that|since|instead of|rather than)\b/i,
  ),
  cue('decision', 0.8, /\bwe (?:switched|moved|migrated|went) (?:\S+ ){0,4}(?:from|to|with|back)\b/i),
  cue('preference', 0.85, /\b(?:I|we|the team) (?:strongly |really |generally |usually )?prefer\b/i),
  cue('preference', 0.8, /\bprefer .{2,80}\b(?:over|to|rather than|instead of)\b/i),
  cue('preference', 0.75, /\b(?:I|we)(?:'d| would) rather\b/i),
  cue('practice', 0.9, /\b(?:rule of thumb|note to self|the trick is|lesson (?:learned|learnt))\b/i),
  cue('practice', 0.8, /^(?:\W{0,4})(?:so |and |please |but )?(?:always|never)\b/i),
  cue('practice', 0.75, /\b(?:must|should|you|we|I) (?:always|never)\b/i),
  cue('practice', 0.75, /\b(?:best practice|good practice|remember (?:to|that)|be careful (?:to|with|not))\b/i),
  cue(
    'practice',
    0.75,
    /^(?:\W{0,4})(?:do not|don't|avoid|make sure|be sure)\b.{5,200}\b(?:because|otherwise|or else|since|so that)\b/i,
  ),
  cue(
    'practice',
    0.7,
    /^(?:\W{0,4})(?:to|in order to) .{3,80}, (?:run|use|set|call|add|pass|enable|disable|first|you)\b/i,
  ),
  cue('fact', 0.9, /\b(?:TIL\b|today I learned|I (?:just |have )?(?:learned|learnt) that|we (?:learned|learnt))/),
  cue('fact', 0.75, /\bonly works? (?:if|when|with|on|in)\b/i),
  cue('fact', 0.7, /\b(?:note that|keep in mind that|the default (?:\S+ ){0,3}is)\b/i),
  cue('fact', 0.7, /\b(?:does not|doesn't|do not|don't) (?:support|follow|respect|work (?:with|on|in))\b/i),
]

const SENTENCE_CHARS_MIN = 25
const SENTENCE_CHARS_MAX = 500
const CONTENT_CHARS_MAX = 600
const TITLE_CHARS_MAX = 80
const TAGS_MAX = 5

const QUESTION =
  /\?\W*$|^(?:how|why|what|when|where|which|who|can|could|should|would|is|are|does|do|did|has|have|will) (?:I|we|you|it|the|this|that|there|to)\b/i
const REQUEST =
  /^(?:\W{0,4})(?:please|can you|could you|would you|help|write|create|implement|explain|show me|give me|let's|I want|I need|I'd like)\b/i
const HEDGED =
  /\b(?:maybe|perhaps|might|probably|possibly|I think|I guess|I suspect|not sure|no idea|could be|if only|hopefully|seems? to)\b/i
const REASONED = /\b(?:because|so that|otherwise|due to|instead of|rather than)\b/i
const CONTINUES = /^(?:because|so|this|that|otherwise|the reason|it|which|then|without)\b/i

interface Found {
  readonly text: string
  readonly category: string
  readonly confidence: number
}

/** Only what people and assistants say: system prompts and output of tools state nothing learnt. */
const ROLES: ReadonlySet<string> = new Set(['user', 'assistant'])

/** In the order of the messages; the same sentence in several messages is one learning. */
export function findLearnings(messages: readonly ModelMessage[]): readonly ModelLearning[] {
  const learnings = new Map<string, ModelLearning>()
  for (const { id, role, content } of messages) {
    if (!ROLES.has(role)) continue
    for (const { text, category, confidence } of sentencesThatTeach(content)) {
      const identity = text.toLowerCase()
      const known = learnings.get(identity)
      const ids = new Set([...(known?.source_message_ids ?? []), id])
      learnings.set(identity, {
        ...{ category, title: titleOf(text), content: text, confidence, tags: tagsOf(text) },
        source_message_ids: [...ids],
      })
    }
  }
  return [...learnings.values()]
}

function sentencesThatTeach(content: string): readonly Found[] {
  return paragraphsOf(content).flatMap((paragraph) => {
    const sentences = sentencesOf(paragraph)
    return sentences.flatMap((sentence, at) => {
      const judged = judge(sentence)
      if (judged === null) return []
      const next = sentences[at + 1] ?? ''
      const continued = `${sentence} ${next}`
      const isWhole = CONTINUES.test(next) && judge(next) === null && !QUESTION.test(next)
      return [{ ...judged, text: isWhole && continued.length <= CONTENT_CHARS_MAX ? continued : sentence }]
    })
  })
}

/** Null for a sentence that teaches nothing. */
function judge(sentence: string): Omit<Found, 'text'> | null {
  if (sentence.length < SENTENCE_CHARS_MIN || sentence.length > SENTENCE_CHARS_MAX) return null
  if (QUESTION.test(sentence) || REQUEST.test(sentence)) return null
  const [best] = CUES.filter(({ pattern }) => pattern.test(sentence)).sort((a, b) => b.confidence - a.confidence)
  if (best === undefined) return null
  const confidence = best.confidence + (REASONED.test(sentence) ? 0.05 : 0) - (HEDGED.test(sentence) ? 0.3 : 0)
  return { category: best.category, confidence: Math.round(Math.min(confidence, 0.95) * 100) / 100 }
}

/** Prose only: code, quotes, logs and stack traces state nothing. */
function paragraphsOf(content: string): readonly string[] {
  const prose = content.split(/^\s{0,3}(?:```|~~~).*$/m).filter((_, index) => index % 2 === 0)
  return prose
    .flatMap((part) => part.split(/\n\s*\n|\n(?=\s*(?:[-*+•]|\d+[.)])\s)/))
    .map((paragraph) => paragraph.split('\n').filter(isProse).join(' '))
    .map((paragraph) =>
      paragraph
        .replace(/^\s*(?:[-*+•]|\d+[.)]|#+)\s+/, '')
        .replaceAll(/\s+/g, ' ')
        .trim(),
    )
}

function isProse(line: string): boolean {
  return !/^\s*(?:[>$|]|at \S+|\d{4}-\d\d-\d\d|\[?(?:ERROR|WARN|INFO|DEBUG)\b)|[;{}]\s*$/.test(line)
}

const segmenter = new Intl.Segmenter('en', { granularity: 'sentence' })

function sentencesOf(paragraph: string): readonly string[] {
  return [...segmenter.segment(paragraph)].map(({ segment }) => segment.trim())
}

const OPENING =
  /^(?:(?:so|ok|okay|well|yes|and|but|ah|oh|btw|fyi|note to self|TIL|decision)\b[:,]?\s+|(?:it )?turns out(?: that)?,?\s+)+/i

function titleOf(text: string): string {
  const [first = text] = sentencesOf(text)
  const plain = first.replace(OPENING, '').replace(/[.!:;,\s]+$/, '')
  const title = plain === '' ? first : plain
  const cut = title.length <= TITLE_CHARS_MAX ? title : `${title.slice(0, TITLE_CHARS_MAX - 1).replace(/\s+\S*$/, '')}…`
  return cut.charAt(0).toUpperCase() + cut.slice(1)
}

const STOP_WORDS = new Set(
  `about after again always because before being between cannot caused causes decided default doesn't during either every finally
  further having instead learned learnt never nothing other otherwise please prefer problem rather really reason remember should since
  solution something still their there these thing things those through turned turns under until whenever where which while without
  would issue works worked working also been both cause does done each from have here into just keep like make more most much must
  need only over same some such than that them then they this used using very want well were what when will with your fixed`.split(
    /\s+/,
  ),
)

/** What stands in backticks, then names of things, then the longest words. */
function tagsOf(text: string): readonly string[] {
  const quoted = [...text.matchAll(/`([^`\n]{2,40})`/g)].map(([, code = '']) => code)
  const plain = text.replaceAll(/`[^`\n]*`|\[[A-Z_ -]+\]/g, ' ')
  const words = plain.match(/[\p{L}\p{N}][\p{L}\p{N}_.:/-]{1,39}/gu) ?? []
  const names = words.filter((word, at) => at > 0 && /\p{Lu}|\d|[_./:-]\p{L}/u.test(word.slice(0, 40)))
  const byLength = words.filter((word) => word.length > 3).sort((a, b) => b.length - a.length)
  const tags = [...quoted, ...names, ...byLength].map((tag) => tag.toLowerCase().replace(/[.:/-]+$/, ''))
  return [...new Set(tags)].filter((tag) => tag.length > 1 && !STOP_WORDS.has(tag)).slice(0, TAGS_MAX)
}
