// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command pause keeps the namespaces of a pod open: it waits for a signal.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	<-stop
}
