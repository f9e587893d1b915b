// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

// translate looks a string up in the table: the first pair that has it counts. A
// value that is not in the table stays as it is.
func translate(table [][2]string, value *node, toHub bool) *node {
	if !isString(value.raw) {
		return value
	}
	from, to := 1, 0
	if toHub {
		from, to = 0, 1
	}
	text := decodeString(value.raw)
	for _, pair := range table {
		if pair[from] == text {
			return rawNode(appendString(nil, pair[to]))
		}
	}
	return value
}
