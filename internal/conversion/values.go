// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import "bytes"

// translate looks a string up in the table: the first pair that has it counts. A
// value that is not in the table stays as it is.
func translate(h *hop, table []quotedPair, value *node, toHub bool) *node {
	if len(table) == 0 || !value.isText() {
		return value
	}
	from, to := 1, 0
	if toHub {
		from, to = 0, 1
	}
	text := value.text
	if !isPlain(text) {
		text = h.quote(h.decode(text)).text
	}
	for i := range table {
		if bytes.Equal(table[i][from], text) {
			return h.raw(table[i][to])
		}
	}
	return value
}

// quotedPair is a pair of a table as JSON strings.
type quotedPair [2][]byte

func quotedPairs(table [][2]string) []quotedPair {
	pairs := make([]quotedPair, len(table))
	for i, pair := range table {
		pairs[i] = quotedPair{appendQuoted(nil, pair[0]), appendQuoted(nil, pair[1])}
	}
	return pairs
}
