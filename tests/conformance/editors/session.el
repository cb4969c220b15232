;;; A session in Emacs without a screen: emacs --batch --load session.el RECIPE MODEL; prints a line a stop.
;; -*- lexical-binding: t -*-

(setq lsp-session-file (expand-file-name "lsp-session" user-emacs-directory)
      dap-breakpoints-file (expand-file-name "breakpoints" user-emacs-directory)
      dap-auto-configure-features nil
      dap-auto-show-output nil
      enable-local-variables nil)

(defconst recipe (pop command-line-args-left))
(defconst model (pop command-line-args-left))
(defconst listing (expand-file-name ".stepper/model.stepper.py" (file-name-directory model)))

(defun stands-at ()
  "Return the frame in which the session stands, once it does."
  (let ((end (+ (float-time) 30)) (found nil))
    (while (not found)
      (when (> (float-time) end) (error "The run does not stop"))
      (accept-process-output nil 0.05)
      (setq found (ignore-errors (dap--debug-session-active-frame (dap--cur-session)))))
    found))

(defun tell (verb)
  "Print the frame and the line of the listing that VERB has led to."
  (let* ((frame (stands-at)) (line (gethash "line" frame)))
    (with-current-buffer (find-file-noselect listing)
      (goto-char (point-min))
      (forward-line (1- line))
      (princ (format "%s | %s | %s\n" verb (gethash "name" frame)
                     (string-trim (buffer-substring (line-beginning-position) (line-end-position))))))))

(load recipe nil t)
(find-file model)
(stepper-debug model)
(tell "launch")
(with-current-buffer (find-file listing)
  (goto-char (point-min))
  (re-search-forward "^ *wkv = ")
  (dap-breakpoint-add))
(accept-process-output nil 0.5)
(dap-continue (dap--cur-session) (dap--debug-session-thread-id (dap--cur-session)))
(tell "continue")
(dap-next (dap--cur-session))
(tell "next")
(stepper-step-back)
(tell "step back")
(dap-continue (dap--cur-session) (dap--debug-session-thread-id (dap--cur-session)))
(tell "continue")
(stepper-reverse-continue)
(tell "reverse")
(dap-disconnect (dap--cur-session))
