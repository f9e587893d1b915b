// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"errors"
	"os"
)

// The processes of a cluster run the executable that started it, under these names.
const (
	self           = "/proc/self/exe"
	supervisorName = "localcluster-supervisor"
	enterName      = "localcluster-enter"
	insideName     = "localcluster-inside"
	nodesName      = "localcluster-nodes"
)

var errNoRoles = errors.New("this program cannot start clusters: call localcluster.PlayRole first thing in main or TestMain")

// canPlayRoles is set by PlayRole. Without that call, a supervisor would run the program's main
// instead, and start more supervisors.
var canPlayRoles bool

// PlayRole must be the first call in main, or TestMain, of any program that calls Up or Command. In
// the program itself it does nothing. In processes that this package starts from the same
// executable it does their work and does not return.
func PlayRole() {
	canPlayRoles = true
	roles := map[string]func(args []string) int{
		supervisorName: func(args []string) int { return supervise(args[0]) },
		nodesName:      func(args []string) int { return runNodes(args[0]) },
		enterName:      enter,
		insideName:     becomeProgram,
	}
	if role, ours := roles[os.Args[0]]; ours && len(os.Args) > 1 {
		os.Exit(role(os.Args[1:]))
	}
}
