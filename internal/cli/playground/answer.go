// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package playground

import (
	"context"
	"encoding/json"
	"fmt"
)

// The questions of the page.
const (
	QuestionCheck    = "check"
	QuestionSuggest  = "suggest"
	QuestionAccept   = "accept"
	QuestionComplete = "complete"
)

// Question is the JSON of a question: the texts, and what some questions add.
type Question struct {
	Input
	// Suggestion is the one to accept.
	Suggestion Suggestion `json:"suggestion"`
	// Offset of the cursor in the policy, in bytes, for completions.
	Offset int `json:"offset"`
}

// Answer answers a question in JSON. It fails only if the question is unknown, or is not JSON: what is wrong with the
// texts is a part of the answer.
func Answer(ctx context.Context, name string, question []byte) ([]byte, error) {
	var asked Question
	if err := json.Unmarshal(question, &asked); err != nil {
		return nil, fmt.Errorf("read the question: %w", err)
	}
	var answer any
	switch name {
	case QuestionCheck:
		answer = Check(ctx, asked.Input)
	case QuestionSuggest:
		answer = Suggest(ctx, asked.Input)
	case QuestionAccept:
		answer = Accept(asked.Input, asked.Suggestion)
	case QuestionComplete:
		answer = Complete(asked.Input, asked.Offset)
	default:
		return nil, fmt.Errorf("there is no question %q", name)
	}
	return json.Marshal(answer)
}
