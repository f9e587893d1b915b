// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

// translate looks a string up in the table: the first pair that has it counts. A
// value that is not in the table stays as it is.
func translate(h *hop, table [][2]string, value *node, toHub bool) *node {
	if len(table) == 0 || !value.isText() {
		return value
	}
	from, to := 1, 0
	if toHub {
		from, to = 0, 1
	}
	text := h.decode(value.text)
	for i := range table {
		if table[i][from] == string(text) {
			return h.quote([]byte(table[i][to]))
		}
	}
	return value
}
