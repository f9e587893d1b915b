// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// container is a container of a pod: a process, and after it perhaps another one.
type container struct {
	pod  *pod
	spec corev1.Container

	// The lock of the pod protects what follows.
	status corev1.ContainerStatus
	// finished tells that it will not be started again.
	finished bool
}

func newContainer(p *pod, object *corev1.Pod, index int) *container {
	c := &container{pod: p, spec: object.Spec.Containers[index]}
	c.status = corev1.ContainerStatus{Name: c.spec.Name, Image: c.spec.Image, Started: new(false)}
	// On a node that was killed and comes back.
	for _, earlier := range object.Status.ContainerStatuses {
		if earlier.Name == c.spec.Name && earlier.ContainerID != "" {
			c.status.RestartCount = earlier.RestartCount + 1
		}
	}
	c.status.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
	return c
}

func (c *container) change(do func(*corev1.ContainerStatus)) {
	c.pod.mu.Lock()
	do(&c.status)
	c.pod.mu.Unlock()
	c.pod.touch()
}

func (c *container) setReady(ready bool) {
	c.change(func(s *corev1.ContainerStatus) {
		if s.State.Running != nil {
			s.Ready, s.Started = ready, new(true)
		}
	})
}

func (c *container) wait(reason, message string) {
	c.change(func(s *corev1.ContainerStatus) {
		s.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	})
}

// run runs the container, and restarts it as the pod's restartPolicy says, until wanted or alive ends.
func (c *container) run(alive, wanted context.Context) {
	defer func() {
		c.pod.mu.Lock()
		c.finished = true
		c.pod.mu.Unlock()
		c.pod.touch()
	}()
	policy := c.pod.get().Spec.RestartPolicy
	for pause := backoff; wanted.Err() == nil; {
		program, err := c.prepare()
		if err != nil {
			c.pause(wanted, retryPause)
			continue
		}
		begun := time.Now()
		ended := c.once(alive, wanted, program)
		if wanted.Err() != nil || policy == corev1.RestartPolicyNever || policy == corev1.RestartPolicyOnFailure && ended.ExitCode == 0 {
			return
		}
		// A kubelet forgets after ten minutes, which are 60 times its first pause.
		if time.Since(begun) > 60*backoff {
			pause = backoff
		}
		c.change(func(s *corev1.ContainerStatus) {
			s.LastTerminationState, s.RestartCount = s.State, s.RestartCount+1
			s.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff",
				Message: fmt.Sprintf("back-off %s restarting failed container=%s", pause, c.spec.Name)}}
		})
		c.pause(wanted, pause)
		pause = min(2*pause, 30*backoff)
	}
}

func (c *container) pause(wanted context.Context, pause time.Duration) {
	select {
	case <-wanted.Done():
	case <-time.After(pause):
	}
}

// program is what a container runs.
type program struct {
	path      string
	args, env []string
}

// prepare returns the program, or sets why there is none.
func (c *container) prepare() (program, error) {
	path, known := c.pod.node.cluster.Images[c.spec.Image]
	if !known {
		err := fmt.Errorf("no program is set for the image %q", c.spec.Image)
		c.wait("ErrImagePull", err.Error())
		return program{}, err
	}
	env, err := c.env()
	if err != nil {
		c.wait("CreateContainerConfigError", err.Error())
		return program{}, err
	}
	p := program{path: path, env: env}
	args := c.spec.Args
	if command := c.spec.Command; len(command) > 0 {
		p.path, args = filepath.Join(filepath.Dir(path), filepath.Base(command[0])), slices.Concat(command[1:], args)
	}
	for _, arg := range args {
		p.args = append(p.args, c.argument(arg, env))
	}
	return p, nil
}

// allAddresses is the value of a flag that listens at all addresses: on a node of processes, these are
// not those of the pod alone.
var allAddresses = regexp.MustCompile(`^(--?[a-z-]+=):([0-9]+)$`)

func (c *container) argument(arg string, env []string) string {
	arg = c.pod.volumes.Path(&c.spec, c.expand(arg, env))
	return allAddresses.ReplaceAllString(arg, "${1}"+c.pod.ip+":${2}")
}

func (c *container) expand(text string, env []string) string {
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		text = strings.ReplaceAll(text, "$("+name+")", value)
	}
	return text
}

// env returns the environment of the process: nothing of this program's, as in a container.
func (c *container) env() ([]string, error) {
	env := []string{"HOME=/", "PATH=/usr/local/bin:/usr/bin:/bin", "HOSTNAME=" + c.pod.get().Name}
	server, err := url.Parse(c.pod.node.cluster.Config.Host)
	if err != nil {
		return nil, err
	}
	env = append(env, "KUBERNETES_SERVICE_HOST="+server.Hostname(), "KUBERNETES_SERVICE_PORT="+server.Port())
	kubeconfig, err := c.pod.kubeconfig(&c.spec)
	if err != nil {
		return nil, err
	}
	if kubeconfig != "" {
		env = append(env, "KUBECONFIG="+kubeconfig)
	}
	// Programs that read the limit of their control group would see that of this machine.
	if limit := c.spec.Resources.Limits.Memory().Value(); limit > 0 {
		env = append(env, "GOMEMLIMIT="+strconv.FormatInt(limit/10*9, 10))
	}
	if temporary := c.pod.volumes.Path(&c.spec, os.TempDir()); temporary != os.TempDir() {
		env = append(env, "TMPDIR="+temporary)
	}
	for _, variable := range c.spec.Env {
		value, err := variable.Value, error(nil)
		if from := variable.ValueFrom; from != nil && from.FieldRef != nil {
			value, err = fieldOf(c.pod.get(), from.FieldRef.FieldPath)
		} else if from != nil {
			err = errors.New("nodes of processes have no variables of this kind")
		}
		if err != nil {
			return nil, fmt.Errorf("variable %s: %w", variable.Name, err)
		}
		env = append(env, variable.Name+"="+c.pod.volumes.Path(&c.spec, c.expand(value, env)))
	}
	if len(c.spec.EnvFrom) > 0 {
		return nil, errors.New("nodes of processes have no envFrom")
	}
	return env, nil
}

// once runs the program until it ends, is unhealthy, or has to stop.
func (c *container) once(alive, wanted context.Context, program program) corev1.ContainerStateTerminated {
	object := c.pod.get()
	log := c.pod.node.cluster.logFile(object, c.spec.Name, c.status.RestartCount)
	begun := metav1.Now()
	running, err := start(program, log)
	if err != nil {
		return c.end(corev1.ContainerStateTerminated{ExitCode: 128, Reason: "StartError", Message: err.Error(), StartedAt: begun})
	}
	c.change(func(s *corev1.ContainerStatus) {
		s.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: begun}}
		s.ContainerID = fmt.Sprintf("process://%d", running.pid)
		s.Ready, s.Started = false, new(false)
	})
	probing, stopProbing := context.WithCancel(alive)
	unhealthy := make(chan *corev1.Probe, 1)
	c.pod.running.Go(func() { c.probe(probing, unhealthy) })
	select {
	case <-running.ended:
	case <-alive.Done():
	case <-wanted.Done():
		c.preStop(alive, running)
		running.stop(alive, c.pod.grace())
	case probe := <-unhealthy:
		grace := c.pod.grace()
		if own := probe.TerminationGracePeriodSeconds; own != nil {
			grace = time.Duration(*own) * time.Second
		}
		running.stop(alive, grace)
	}
	running.kill()
	stopProbing()
	return c.end(running.terminated(begun, messageOf(&c.spec, running.status, log)))
}

// preStop waits if the container has to wait before it stops. Other hooks are not run.
func (c *container) preStop(alive context.Context, running *process) {
	if c.spec.Lifecycle == nil || c.spec.Lifecycle.PreStop == nil || c.spec.Lifecycle.PreStop.Sleep == nil {
		return
	}
	select {
	case <-alive.Done():
	case <-running.ended:
	case <-time.After(time.Duration(c.spec.Lifecycle.PreStop.Sleep.Seconds) * time.Second):
	}
}

func (c *container) end(terminated corev1.ContainerStateTerminated) corev1.ContainerStateTerminated {
	terminated.FinishedAt = metav1.Now()
	c.change(func(s *corev1.ContainerStatus) {
		terminated.ContainerID = s.ContainerID
		s.State, s.Ready, s.Started = corev1.ContainerState{Terminated: &terminated}, false, new(false)
	})
	return terminated
}

// messageOf returns the end of the log of a failed container that asks for it. No process can write to
// the fixed path of a termination message.
func messageOf(spec *corev1.Container, status syscall.WaitStatus, log string) string {
	const most = 2048
	if spec.TerminationMessagePolicy != corev1.TerminationMessageFallbackToLogsOnError || status == 0 {
		return ""
	}
	text, _ := os.ReadFile(log) // without it there is no message
	return string(text[max(0, len(text)-most):])
}
