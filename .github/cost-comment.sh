#!/usr/bin/env bash
# Answers a scenario before and after a change, writes what differs as a comment, and fails where a limit is broken.
#
# Reads SCENARIO, PART, BUDGET, MOST_RISE, COMMENT, BASE (the branch that the change goes to) and PULL (its number).
set -euo pipefail
here="${RUNNER_TEMP:-$(mktemp -d)}"
ask="${GPUCOST:-$here/gpucost/bin/gpucost}"
comment="$here/cost.md"
rm -f "$here/before.json" "$here/after.json" "$comment"

# the part that was named, else the first that the scenario has: PART may be left at its default
part_of() {
  python3 - "$1" "$PART" <<'PYTHON'
import json, sys
names = [part["name"] for part in json.load(open(sys.argv[1], encoding="utf-8")).get("parts", [])]
if names:
    print("#" + (sys.argv[2] if sys.argv[2] in names else names[0]))
PYTHON
}

"$ask" report "$SCENARIO" -o "$here/after.json" || [ $? -eq 3 ] # over its own budget: said below
part="$(part_of "$here/after.json")"
note=""
if git cat-file -e "origin/$BASE:$SCENARIO" 2>/dev/null; then
  git worktree remove --force "$here/base" 2>/dev/null || rm -rf "$here/base"
  git worktree prune # of a run that was stopped
  trap 'git worktree remove --force "$here/base" 2>/dev/null || true' EXIT
  git worktree add --quiet --detach "$here/base" "origin/$BASE"
  (cd "$here/base" && "$ask" report "$SCENARIO" -o "$here/before.json") || [ $? -eq 3 ] ||
    note="What the scenario costs on \`$BASE\` cannot be read, so nothing is compared."
else
  note="This scenario is new: all of its cost is new."
fi
code=0
if [ -z "$note" ] && [ "$(part_of "$here/before.json")" != "$part" ]; then
  note="The part ${part#\#} is new: all of its cost is new."
fi
if [ -z "$note" ]; then
  "$ask" diff "$here/before.json$part" "$here/after.json$part" --format github \
    ${BUDGET:+--budget "$BUDGET"} ${MOST_RISE:+--most-rise "$MOST_RISE"} -o "$comment" || code=$?
else # no cost to rise from: the budget alone holds
  "$ask" diff "$here/after.json$part" "$here/after.json$part" --format github \
    ${BUDGET:+--budget "$BUDGET"} -o "$here/same.md" || code=$?
  [ "$code" -eq 0 ] || [ "$code" -eq 3 ] || exit "$code"
  "$ask" report "$SCENARIO" -o "$here/new.md" || [ $? -eq 3 ]
  [ "$code" -eq 0 ] || over="**Over the budget of $BUDGET USD.**"
  printf '### GPU cost\n\n%s\n%s\n\n' "$note" "${over:-}" | cat - "$here/new.md" >"$comment"
fi
# what the change costs, as numbers: for the steps that follow, and to tell whether there is anything to say
numbers="$here/cost.json"
first="$here/before.json" && [ -z "$note" ] || first="$here/after.json"
"$ask" diff "$first$part" "$here/after.json$part" --format json -o "$numbers" || [ $? -eq 3 ]
value() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1], encoding="utf-8"))[sys.argv[2]])' "$numbers" "$1"; }
cost="$(value after)"
change="$([ -z "$note" ] && value change || echo "$cost")" # what is new is all change
over="$([ "$code" -eq 3 ] && echo true || echo false)"
marker="<!-- gpucost: $SCENARIO${part} -->" # by which the next run knows its own comment, and no other bot's
printf '%s\n' "$marker" | cat - "$comment" >"$here/marked.md" && mv "$here/marked.md" "$comment"
if [ -n "${GITHUB_OUTPUT:-}" ]; then
  printf '%s\n' "comment=$comment" "cost=$cost" "change=$change" "over=$over" >>"$GITHUB_OUTPUT"
fi
[ -z "${GITHUB_STEP_SUMMARY:-}" ] || cat "$comment" >>"$GITHUB_STEP_SUMMARY" # also where a fork may not comment

# writes the comment, or edits the one that bears the marker
publish() {
  local comments="repos/$GITHUB_REPOSITORY/issues" own
  own="$(gh api --paginate "$comments/$PULL/comments" --jq ".[] | select(.body | startswith(\"$marker\")) | .id" | head -n 1)"
  if [ -n "$own" ]; then
    gh api --silent -X PATCH "$comments/comments/$own" -F "body=@$comment"
  else
    gh api --silent "$comments/$PULL/comments" -F "body=@$comment"
  fi
}
unchanged="$(python3 -c 'import sys; print(abs(float(sys.argv[1])) < 0.005)' "$change")"
if [ "$COMMENT" = true ] && [ -n "${PULL:-}" ] && ! { [ "${ONLY_IF_CHANGED:-false}" = true ] && [ "$unchanged" = True ]; }; then
  publish || echo "::notice::This run may not comment, as one from a fork: its summary has the cost."
fi
exit "$code"
