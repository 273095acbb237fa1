# shellcheck shell=bash
# session.sh is sourced by the scripts that start processes: it begins a command
# in a session of its own, so that everything it leaves behind can be told apart
# from what others run, and ended.

# begin command... runs it in the background; $! is its session. A shell ignores
# interrupts in what it runs in the background, so that is set back.
begin() {
	setsid env --default-signal=INT,QUIT "$@" </dev/null &
}

# members prints the ids of the processes of a session. Zombies do not count.
members() {
	local stat fields
	for stat in /proc/[0-9]*/stat; do
		fields=$(cat "$stat" 2>/dev/null) || continue
		read -r -a fields <<<"${fields##*) }" # state, parent, group, session
		if [[ ${fields[3]} == "$1" && ${fields[0]} != Z ]]; then
			basename "$(dirname "$stat")"
		fi
	done
}

# end kills what is left of a session and prints it; nothing left is success.
end() {
	local left
	mapfile -t left < <(members "$1")
	((${#left[@]} > 0)) || return 0
	echo "still running at the end:" >&2
	ps -o pid,args -p "$(IFS=,; echo "${left[*]}")" >&2 || true
	kill -KILL "${left[@]}" 2>/dev/null || true
	return 1
}
