/** A span of time as people read it: `40 s`, `12 min`, `5 h`, `9 d`. */
export function seconds(span: number): string {
  const whole = Math.round(span);
  if (whole < 120) return `${whole} s`;
  if (whole < 7_200) return `${Math.round(whole / 60)} min`;
  return whole < 172_800 ? `${Math.round(whole / 3_600)} h` : `${Math.round(whole / 86_400)} d`;
}
