/** A bar with a label. */
export function ProgressBar(props: { readonly percent: number; readonly text: string; readonly label: string }) {
  return (
    <div class="progress">
      <progress max={100} value={props.percent} aria-label={props.label} />
      <span class="figures">{props.text}</span>
    </div>
  )
}
