#!/usr/bin/env bash
# Answers a scenario before and after a change, writes what differs as a comment, and fails where a limit is broken.
#
# Reads SCENARIO, PART, BUDGET, MOST_RISE, COMMENT, BASE (the branch that the change goes to) and PULL (its number).
set -euo pipefail
here="${RUNNER_TEMP:-$(mktemp -d)}"
ask="${GPUCOST:-$here/gpucost/bin/gpucost}"
comment="$here/cost.md"
part="${PART:+#$PART}"

"$ask" report "$SCENARIO" -o "$here/after.json" || [ $? -eq 3 ] # over its own budget: said below
if git cat-file -e "origin/$BASE:$SCENARIO" 2>/dev/null; then
  rm -rf "$here/base"
  git worktree add --quiet --detach "$here/base" "origin/$BASE"
  (cd "$here/base" && "$ask" report "$SCENARIO" -o "$here/before.json") || [ $? -eq 3 ]
  git worktree remove --force "$here/base"
else
  cp "$here/after.json" "$here/before.json" # the scenario is new: nothing to compare it with
fi
code=0
"$ask" diff "$here/before.json$part" "$here/after.json$part" --format github \
  ${BUDGET:+--budget "$BUDGET"} ${MOST_RISE:+--most-rise "$MOST_RISE"} -o "$comment" || code=$?
[ -z "${GITHUB_OUTPUT:-}" ] || echo "comment=$comment" >>"$GITHUB_OUTPUT"
[ -z "${GITHUB_STEP_SUMMARY:-}" ] || [ ! -s "$comment" ] || cat "$comment" >>"$GITHUB_STEP_SUMMARY"
if [ "$COMMENT" = true ] && [ -n "${PULL:-}" ] && [ -s "$comment" ]; then
  gh pr comment "$PULL" --body-file "$comment" --edit-last --create-if-none
fi
exit "$code"
